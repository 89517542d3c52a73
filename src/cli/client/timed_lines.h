// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"
#include "runs/records/log_times.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// How long a line is held back whose time is not recorded yet: the supervisor of a run records one
/// a second.
constexpr std::chrono::seconds k_timed_line_patience{3};

/// The lines of a log, each with the time at which it began in front: `2026-11-28 16:40:07`, or `?`
/// if that is not known. The times are those of the records of a run (LogTimes); a line is held
/// back until its time is recorded, at most k_timed_line_patience. Both streams stay in the order
/// in which their lines were completed.
class TimedLines {
public:
    using Steady = std::chrono::steady_clock::time_point;
    struct Text {
        Stream stream = Stream::out;
        std::string bytes; ///< a line and its time
        bool operator==(const Text&) const = default;
    };

    /// Of a log whose times are not recorded.
    TimedLines() = default;
    /// Of a run. `store` must outlive the object.
    TimedLines(Store& store, const RunKey& key);

    /// Bytes of the log; `offset`: that of the first one in the file of its link and stream.
    void add(LinkNumber link, Stream stream, std::uint64_t offset, std::string_view bytes,
             Steady now);
    /// The lines that are ready, in order.
    std::vector<Text> take(Steady now);
    /// The lines left, also incomplete ones.
    std::vector<Text> take_rest();
    /// True if a line is held back.
    bool waits() const { return !m_lines.empty(); }

private:
    struct Line {
        LinkNumber link;
        Stream stream = Stream::out;
        std::uint64_t offset = 0;
        std::string bytes;
        Steady since;
    };
    struct Times {
        LogTimes reader;
        std::vector<LogTimes::Mark> marks;
    };

    void finish(Stream stream, Steady now);
    std::optional<Time> time_of(const Line& line);
    Text text_of(const Line& line, const std::optional<Time>& at) const;

    Store* m_store = nullptr; ///< null: no times
    std::optional<RunKey> m_key;
    std::map<std::pair<LinkNumber, Stream>, Times> m_times;
    std::array<Line, 2> m_open; ///< incomplete lines
    std::deque<Line> m_lines;   ///< complete ones
};

} // namespace gpuq::cli
