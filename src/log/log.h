// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "log/level.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

/// The log of this process, for users and operators who look for the cause of a fault: messages for
/// everyone are not records, and no program reads them. Records are dropped, at the cost of one
/// comparison, until `to_stderr` or `to_file` is called. Each is one line: control characters and
/// everything that looks like a secret are replaced (core/redact.h). All functions may be called
/// from any thread.
namespace gpuq::log {

/// Writes records to stderr at once, after the prefix `gpuq: `.
void to_stderr(const Levels& levels);

/// Writes records to a file that is created, with mode 0600, by the first one. A thread of its own
/// writes, so that a disk that hangs blocks no caller: if 1,024 records wait, the oldest is
/// dropped. Beyond `most` bytes the file is renamed to PATH.1, replacing the one before. Several
/// processes may write to the same file. `process` is part of each record: `supervisor`, `keeper`.
void to_file(const std::string& path, const std::string& process, const Levels& levels,
             std::size_t most = 1 << 20);

/// The thresholds, for a child process that shall log like this one.
Levels levels();

/// Waits until the records so far are in the file, at most this long. To be called before _exit().
void flush(std::chrono::milliseconds at_most);

/// For a forked child, whose parent's thread is missing in it: it writes records itself. `process`
/// replaces the parent's; empty: unchanged.
void after_fork(const std::string& process = "");

namespace detail {
extern std::array<std::atomic<Level>, k_parts> levels;
void write(Level level, Part part, std::string_view text);
} // namespace detail

/// Whether a record of this level would be written: for records that are expensive to compute.
inline bool is_on(Level level, Part part)
{
    return level >= detail::levels[static_cast<std::size_t>(part)].load(std::memory_order_relaxed);
}

template <class... Values>
void write(Level level, Part part, fmt::format_string<Values...> text, Values&&... values)
{
    if (is_on(level, part)) {
        detail::write(level, part, fmt::format(text, std::forward<Values>(values)...));
    }
}

template <class... Values>
void trace(Part part, fmt::format_string<Values...> text, Values&&... values)
{
    write(Level::trace, part, text, std::forward<Values>(values)...);
}
template <class... Values>
void debug(Part part, fmt::format_string<Values...> text, Values&&... values)
{
    write(Level::debug, part, text, std::forward<Values>(values)...);
}
template <class... Values>
void info(Part part, fmt::format_string<Values...> text, Values&&... values)
{
    write(Level::info, part, text, std::forward<Values>(values)...);
}
template <class... Values>
void warning(Part part, fmt::format_string<Values...> text, Values&&... values)
{
    write(Level::warning, part, text, std::forward<Values>(values)...);
}
template <class... Values>
void error(Part part, fmt::format_string<Values...> text, Values&&... values)
{
    write(Level::error, part, text, std::forward<Values>(values)...);
}

/// Records the failure of an action whose result does not matter to the caller, at debug. `action`
/// is what failed: `remove the socket`.
template <class Value>
void discard(Part part, std::string_view action, const Result<Value>& result)
{
    if (!result) {
        debug(part, "{}: {}", action, result.error().text);
    }
}

/// Records at debug, when it goes out of scope, how long something took.
class Timer {
public:
    Timer(Part part, std::string_view what)
        : m_part(part)
        , m_what(is_on(Level::debug, part) ? what : std::string_view())
        , m_begin(std::chrono::steady_clock::now())
    {
    }
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    /// Adds the outcome to the record, such as the number of jobs or an error.
    void outcome(std::string text) { m_outcome = std::move(text); }

private:
    Part m_part;
    std::string m_what; ///< empty: off
    std::chrono::steady_clock::time_point m_begin;
    std::string m_outcome;
};

} // namespace gpuq::log
