// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/output_file.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// How much of a log a copy holds: used to continue after it, and to detect that the copy is of
/// another log.
struct LogMark {
    std::uint64_t bytes = 0;   ///< size of the copy
    std::uint64_t checked = 0; ///< number of its last bytes ...
    std::uint32_t crc = 0;     ///< ... have this CRC-32C
    bool operator==(const LogMark&) const = default;
};
/// `BYTES:CHECKED:CRC`, the checksum in hexadecimal.
std::string to_text(const LogMark& mark);
std::optional<LogMark> parse_log_mark(std::string_view text);

/// The file of `gpuq logs --to`. Its size is the number of bytes received and so gives the position
/// to continue at, after any termination of gpuq and on any machine. Locked against other gpuq
/// processes.
class LogCopy {
public:
    /// Errors as in OutputFile.
    static Result<LogCopy> at(const std::string& path);

    /// The mark for the current content of the file, no matter which process wrote it. `io`.
    Result<LogMark> mark() const;
    std::uint64_t size() const { return m_size; }
    /// 0 or an errno; the part of `bytes` written before the error stays in the file. Synced to
    /// disk a second later, if more follows, or by `sync`.
    int write(std::string_view bytes);
    int sync();
    /// For another part of gpuq that writes to the file directly.
    int descriptor() const { return m_file.get(); }
    /// Removes the file if it is empty and was created by `at`.
    void forget() const;

private:
    using Steady = std::chrono::steady_clock::time_point;
    LogCopy(OutputFile place, OutputFile::Appended opened, std::uint64_t size);

    OutputFile m_place;
    Descriptor m_file;
    bool m_made; ///< created by `at`
    std::uint64_t m_size;
    Steady m_synced;
};

} // namespace gpuq::cli
