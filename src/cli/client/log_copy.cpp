// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/log_copy.h"

#include "core/number.h"
#include "telemetry/crc32c.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

/// Two logs with this many equal bytes are taken to be the same.
constexpr std::uint64_t k_checked = 64 << 10;
constexpr auto k_sync_period = 1s;

} // namespace

std::string to_text(const LogMark& mark)
{
    return fmt::format("{}:{}:{:08x}", mark.bytes, mark.checked, mark.crc);
}

std::optional<LogMark> parse_log_mark(std::string_view text)
{
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
        return std::nullopt;
    }
    const auto bytes = whole_number(text.substr(0, first));
    const auto checked = whole_number(text.substr(first + 1, second - first - 1));
    const std::string_view digits = text.substr(second + 1);
    LogMark mark;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), mark.crc, 16);
    if (!bytes || !checked || *checked > *bytes || *checked > k_checked || error != std::errc() ||
        end != digits.data() + digits.size()) {
        return std::nullopt;
    }
    mark.bytes = *bytes;
    mark.checked = *checked;
    return mark;
}

LogCopy::LogCopy(OutputFile place, OutputFile::Appended opened, std::uint64_t size)
    : m_place(std::move(place))
    , m_file(std::move(opened.file))
    , m_made(opened.made)
    , m_size(size)
    , m_synced(std::chrono::steady_clock::now())
{
}

Result<LogCopy> LogCopy::at(const std::string& path)
{
    TRY_ASSIGN(OutputFile place, OutputFile::at(path));
    TRY_ASSIGN(OutputFile::Appended opened, place.append());
    struct stat facts {};
    if (::fstat(opened.file.get(), &facts) != 0) {
        return fail(Error::Kind::io,
                    fmt::format("can't read {}: {}", sanitised(path), std::strerror(errno)));
    }
    return LogCopy(std::move(place), std::move(opened), static_cast<std::uint64_t>(facts.st_size));
}

void LogCopy::forget() const
{
    struct stat facts {};
    if (m_made && ::fstat(m_file.get(), &facts) == 0 && facts.st_size == 0) {
        m_place.remove();
    }
}

Result<LogMark> LogCopy::mark() const
{
    struct stat facts {};
    if (::fstat(m_file.get(), &facts) != 0) {
        return fail(Error::Kind::io,
                    fmt::format("can't read the file of --to: {}", std::strerror(errno)));
    }
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    LogMark mark{size, std::min(size, k_checked), 0};
    std::string bytes(mark.checked, '\0');
    for (std::size_t have = 0; have < bytes.size();) {
        const auto at = static_cast<off_t>(mark.bytes - mark.checked + have);
        const ssize_t count = ::pread(m_file.get(), bytes.data() + have, bytes.size() - have, at);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return fail(Error::Kind::io,
                        fmt::format("can't read the file of --to: {}",
                                    count == 0 ? "it became shorter" : std::strerror(errno)));
        }
        have += count < 0 ? 0 : static_cast<std::size_t>(count);
    }
    mark.crc = telemetry::crc32c(bytes);
    return mark;
}

int LogCopy::write(std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t count = ::write(m_file.get(), bytes.data(), bytes.size());
        if (count > 0) {
            m_size += static_cast<std::uint64_t>(count);
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno != EINTR) {
            return errno;
        }
    }
    const Steady now = std::chrono::steady_clock::now();
    return now - m_synced >= k_sync_period ? sync() : 0;
}

int LogCopy::sync()
{
    m_synced = std::chrono::steady_clock::now();
    return ::fdatasync(m_file.get()) == 0 ? 0 : errno;
}

} // namespace gpuq::cli
