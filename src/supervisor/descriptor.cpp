// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <system_error>
#include <unistd.h>

namespace gpuq::supervisor {

Result<Pipe> make_pipe()
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return fail(Error::Kind::io, fmt::format("no pipe: {}", error_text(errno)));
    }
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

void set_nonblocking(int fd)
{
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0) {
        ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

bool write_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EAGAIN) {
            // Somebody else made the shared description non-blocking.
            pollfd wait{fd, POLLOUT, 0};
            ::poll(&wait, 1, -1);
            continue;
        }
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
    }
    return true;
}

std::string error_text(int error)
{
    return std::generic_category().message(error);
}

} // namespace gpuq::supervisor
