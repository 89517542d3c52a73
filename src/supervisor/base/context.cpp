// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/context.h"

#include "core/layout.h"
#include "log/log.h"

#include <cstdlib>
#include <unistd.h>

namespace gpuq::supervisor {

void start_log(const Options& options, const std::string& process)
{
    const log::Levels warnings = log::Levels::all(log::Level::warning);
    const char* const requested = std::getenv("GPUQ_LOG");
    const auto levels = log::parse_levels(requested == nullptr ? "" : requested, warnings);
    log::after_fork();
    log::to_file(options.state_dir + "/" + layout::supervisor_log(options.key, options.link),
                 process, levels ? *levels : warnings);
}

std::vector<std::string> socket_names(const Options& options)
{
    return options.names.sockets(::geteuid(), options.key, options.link);
}

} // namespace gpuq::supervisor
