// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/output_file.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// How much of a log somebody has: what is needed to go on after it, and to notice that it is the
/// beginning of another log.
struct LogMark {
    std::uint64_t bytes = 0;   ///< so many, from the first
    std::uint64_t checked = 0; ///< so many of the last of them ...
    std::uint32_t crc = 0;     ///< ... have this CRC-32C
    bool operator==(const LogMark&) const = default;
};
/// `BYTES:CHECKED:CRC`, the checksum in hexadecimal.
std::string to_text(const LogMark& mark);
std::optional<LogMark> parse_log_mark(std::string_view text);

/// The file of `gpuq logs --to`: as long as what has arrived, so that its size says where to go on
/// after any death of gpuq, on any machine. No other gpuq writes it meanwhile.
class LogCopy {
public:
    /// Errors of OutputFile.
    static Result<LogCopy> at(const std::string& path);

    /// Of what the file holds now, whoever has written it. `io`.
    Result<LogMark> mark() const;
    std::uint64_t size() const { return m_size; }
    /// 0 or an errno; what was written of `bytes` before it is in the file. On disk a second later,
    /// if more comes, or after `sync`.
    int write(std::string_view bytes);
    int sync();
    /// For a process that is to write by itself.
    int descriptor() const { return m_file.get(); }
    /// Nothing was to come: an empty file that was not there before is not there again.
    void forget() const;

private:
    using Steady = std::chrono::steady_clock::time_point;
    LogCopy(OutputFile place, OutputFile::Appended opened, std::uint64_t size);

    OutputFile m_place;
    Descriptor m_file;
    bool m_made; ///< by us
    std::uint64_t m_size;
    Steady m_synced;
};

} // namespace gpuq::cli
