// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/descriptor.h"

#include <fcntl.h>
#include <system_error>

namespace gpuq::supervisor {

void set_nonblocking(int fd)
{
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0) {
        ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

std::string error_text(int error)
{
    return std::generic_category().message(error);
}

} // namespace gpuq::supervisor
