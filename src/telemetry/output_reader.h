// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/line.h"
#include "telemetry/pattern.h"
#include "telemetry/series.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::telemetry {

/// Extracts the progress of a training from a program's output, read in pieces. A line ends at \n,
/// at the \r of a bar that redraws itself, or at a backspace.
class OutputReader {
public:
    /// If there is a pattern of the user, which must outlive the reader, only that is used.
    explicit OutputReader(const Pattern* own = nullptr)
        : m_own(own)
    {
    }

    /// `at`: when they were written; that of the end of a line is the time of its values.
    void feed(std::string_view bytes, std::optional<Time> at = std::nullopt);
    /// Ends the last line, at the end of the output or before a gap.
    void end_line();

    /// The first and the last progress in the output. If one line contains an epoch and a step in
    /// it, both with their totals (`Epoch [2/10], Step [100/600]`), it is converted to steps over
    /// all epochs. Otherwise epochs take precedence over steps and steps over iterations, so that
    /// the progress of two links of one program can be compared; without any of them, a bar counts
    /// as steps. An epoch counts when it is over: `Epoch 3/3` alone on its line, followed by a bar
    /// (Keras), marks its beginning.
    std::optional<Progress> first() const;
    std::optional<Progress> last() const;
    /// The progress when the program began. Progress is reported after it is made, so the program
    /// is assumed to have advanced as far before the first report as between the first and the
    /// second. For a single report, for a bar, which is drawn at its beginning, and for epochs
    /// reported at their beginning, it is the first report itself.
    std::optional<Progress> began() const;
    /// The newest state of the bar that has been drawn for the longest time: the training's, not
    /// that of a validation within it.
    std::optional<Bar> bar() const;
    /// Curves by the names in the output. A value's step is that of its line, or the last one
    /// reported before it.
    const Curves& curves() const { return m_curves; }

private:
    struct Range {
        Progress first, last;
        std::optional<std::uint64_t> second; ///< the next different value, if meaningful
    };
    struct Bars {
        Bar first, last;
        std::uint64_t line = 0;
    };
    void take_line(std::string_view line);
    void take_place(const Progress& place, bool is_header);
    static void add(std::optional<Range>& range, const Progress& place);
    std::optional<Progress> step_of_all(const std::vector<Progress>& counters);
    bool counts_in_epochs() const { return m_all_steps && !m_steps_continue; }
    void take_bar(Bar bar);
    std::uint64_t epochs_before() const;
    bool is_epoch_over() const;
    const Bars* main_bar() const;
    std::optional<Range> range() const;
    std::int64_t step() const;

    const Pattern* m_own;
    std::string m_line;
    std::optional<Time> m_at;                       ///< of the bytes fed last
    std::array<std::optional<Range>, 3> m_counters; ///< by unit, in order of precedence
    std::optional<Range> m_all_steps;               ///< over all epochs
    struct InEpoch {
        std::uint64_t epoch = 0, step = 0, total = 0;
    };
    std::optional<InEpoch> m_in_epoch; ///< the newest
    bool m_steps_continue = false;     ///< steps do not restart with each epoch
    bool m_epochs_from_zero = false;
    std::vector<Bars> m_bars;
    Curves m_curves;
    std::uint64_t m_lines = 0;
    std::optional<std::uint64_t> m_header; ///< the newest epoch's line, if it contains nothing else
    bool m_headers_begin = false;          ///< such lines precede their epochs
    bool m_printed_as_they_begin = false;  ///< the first epoch's line was of that kind
    /// Bars whose titles are epochs: the epoch that counts as the first, and the newest.
    struct Titles {
        std::uint64_t first = 0, last = 0;
    };
    std::optional<Titles> m_titles;
};

} // namespace gpuq::telemetry
