// SPDX-License-Identifier: GPL-2.0-or-later
#include "log/audit.h"

#include "core/redact.h"
#include "core/timestamp.h"
#include "log/file_sink.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <pwd.h>
#include <unistd.h>

namespace gpuq::log {
namespace {

std::string user()
{
    const passwd* const entry = ::getpwuid(::geteuid());
    const std::string name =
        entry == nullptr ? fmt::format("uid {}", ::geteuid()) : std::string(entry->pw_name);
    const char* const before = std::getenv("SUDO_USER");
    return ::geteuid() == 0 && before != nullptr ? fmt::format("{} (sudo: {})", name, before)
                                                 : name;
}

} // namespace

Result<void> audit(const std::string& path, std::string_view text)
{
    constexpr std::size_t k_most = 1 << 20;
    const Time now = std::chrono::time_point_cast<Time::duration>(std::chrono::system_clock::now());
    const std::string line =
        fmt::format("{} {}: {}", to_iso8601(now), user(), Redactor().text(text));
    return FileSink(path, k_most, FileSink::Full::is_kept).write(sanitised(line) + "\n")
               ? Result<void>()
               : fail(Error::Kind::io, fmt::format("{}: {}", path, std::strerror(errno)));
}

} // namespace gpuq::log
