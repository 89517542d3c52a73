// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/context.h"

#include "core/layout.h"
#include "log/log.h"

#include <fmt/format.h>

#include <cstdlib>
#include <unistd.h>

namespace gpuq::supervisor {

void start_log(const Options& options, const std::string& process)
{
    start_log(options.state_dir + "/" + layout::link_dir(options.key, options.link), process);
}

void start_log(const std::string& link_directory, const std::string& process)
{
    const log::Levels warnings = log::Levels::all(log::Level::warning);
    const char* const requested = std::getenv("GPUQ_LOG");
    const auto levels = log::parse_levels(requested == nullptr ? "" : requested, warnings);
    log::after_fork();
    log::to_file(fmt::format("{}/{}", link_directory, layout::k_supervisor_log), process,
                 levels ? *levels : warnings);
}

std::vector<std::string> socket_names(const Options& options)
{
    return options.names.sockets(::geteuid(), options.key, options.link);
}

} // namespace gpuq::supervisor
