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

/// What the output of a program tells of its training, read in pieces. A line ends at \n, at the \r
/// of a bar that draws itself anew, or at a backspace.
class OutputReader {
public:
    /// With a pattern of the person's own, which outlives the reader, only that counts.
    explicit OutputReader(const Pattern* own = nullptr)
        : m_own(own)
    {
    }

    void feed(std::string_view bytes);
    /// The last line has no end, or a piece is left out behind it.
    void end_line();

    /// The first and the last place it told. Where one line tells an epoch and a step in it, both
    /// with their totals (`Epoch [2/10], Step [100/600]`), steps of all epochs. Of the units that
    /// occur else epochs count before steps and
    /// these before iterations, so that the places of two links of one program can be compared; a
    /// bar counts, as steps, where there are none. An epoch counts when it is over: `Epoch 3/3`
    /// alone on its line, with a bar to follow (Keras), says that it begins.
    std::optional<Progress> first() const;
    std::optional<Progress> last() const;
    /// Where it was when it began: a place is told when it has been reached, so it has come as far
    /// to the first as from there to the second. With one place alone, of a bar, which is drawn at
    /// its beginning, and of epochs that are told as they begin, the first itself.
    std::optional<Progress> began() const;
    /// The newest state of the bar that has been drawn for the longest: that of the training, not
    /// of a validation in it.
    std::optional<Bar> bar() const;
    /// By what the lines name; the step is that of the line, or the one told last before it.
    const Curves& curves() const { return m_curves; }

private:
    struct Range {
        Progress first, last;
        std::optional<std::uint64_t> second; ///< another place; nothing also where it tells nothing
    };
    struct Bars {
        Bar first, last;
        std::uint64_t line = 0;
    };
    void take_line(std::string_view line);
    void take_place(const Progress& place, bool is_header);
    static void add(std::optional<Range>& range, const Progress& place);
    std::optional<Progress> step_of_all(const std::vector<Progress>& words);
    bool counts_in_epochs() const { return m_all_steps && !m_steps_go_on; }
    void take_bar(Bar bar);
    std::uint64_t epochs_before() const;
    bool is_epoch_over() const;
    const Bars* main_bar() const;
    std::optional<Range> range() const;
    std::int64_t step() const;

    const Pattern* m_own;
    std::string m_line;
    std::array<std::optional<Range>, 3> m_words; ///< by unit, as they count
    std::optional<Range> m_all_steps;            ///< of all epochs
    struct InEpoch {
        std::uint64_t epoch = 0, step = 0, total = 0;
    };
    std::optional<InEpoch> m_in_epoch; ///< the newest
    bool m_steps_go_on = false;        ///< they do not begin anew with each epoch
    bool m_epochs_from_zero = false;
    std::vector<Bars> m_bars;
    Curves m_curves;
    std::uint64_t m_lines = 0;
    std::optional<std::uint64_t> m_header; ///< the line of the newest epoch, when it says no more
    bool m_headers_begin = false;          ///< such lines stand before their epochs
    bool m_told_as_they_begin = false;     ///< the first epoch's line was such
    /// Bars are titled by their epoch: the one that counts as the first, and the newest.
    struct Titles {
        std::uint64_t first = 0, last = 0;
    };
    std::optional<Titles> m_titles;
};

} // namespace gpuq::telemetry
