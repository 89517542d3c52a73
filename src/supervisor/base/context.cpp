// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/context.h"

#include <unistd.h>

namespace gpuq::supervisor {

std::vector<std::string> socket_names(const Options& options)
{
    return options.names.sockets(::geteuid(), options.key, options.link);
}

} // namespace gpuq::supervisor
