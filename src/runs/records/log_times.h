// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// When the output of a link was written: its file `times`.
namespace gpuq {

/// A line of it, `MILLISECONDS OUT ERR`: the sizes of both streams at a Unix time. While there is
/// output, lines are a second apart (ten, once the file is large), so that a byte was written
/// shortly before the first line that includes it.
struct LogTime {
    Time at;
    std::array<std::uint64_t, 2> sizes{}; ///< by index of Stream
    bool operator==(const LogTime&) const = default;
};

/// One line, including its newline.
std::string to_line(const LogTime& time);
/// Nothing for an invalid line.
std::optional<LogTime> parse_log_time(std::string_view line);

/// Reads the times of one stream as the file grows.
class LogTimes {
public:
    /// The newest part of the file that is read at the beginning by default.
    static constexpr std::uint64_t k_window = 1 << 20;

    /// `store` must outlive the object.
    LogTimes(Store& store, const RunKey& key, LinkNumber link, Stream stream,
             std::uint64_t window = k_window);

    /// A byte was written at `at` if its offset is less than `size`, and not less than that of the
    /// element before. The first element of all has no time for the bytes before it: they are
    /// older.
    struct Mark {
        std::uint64_t size = 0;
        Time at;
        bool operator==(const Mark&) const = default;
    };
    /// The marks found since the last call. Empty without a file, or if it can't be read.
    std::vector<Mark> next();

    /// Bytes that were written at about the same time, up to the offset `end`.
    struct Part {
        std::optional<Time> at; ///< unset: unknown
        std::uint64_t end = 0;  ///< the largest number if nothing is known of later bytes
        bool operator==(const Part&) const = default;
    };
    /// The bytes from `offset` on, by the marks found so far, in their order.
    static Part part_from(std::uint64_t offset, const std::vector<Mark>& marks);

private:
    Store& m_store;
    std::string m_path;
    std::size_t m_index;
    std::uint64_t m_window;
    std::optional<std::uint64_t> m_at; ///< offset of the next byte to read; unset: nothing read yet
    std::string m_rest;                ///< an incomplete line
    std::uint64_t m_size = 0;          ///< of the last mark
};

} // namespace gpuq
