// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/log_output.h"

#include "cli/base/message.h"
#include "core/exit_status.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace gpuq::cli {

LogOutput::LogOutput()
    : m_before(std::signal(SIGPIPE, SIG_IGN))
{
}

LogOutput::~LogOutput()
{
    std::signal(SIGPIPE, m_before);
}

int LogOutput::write(Stream stream, std::string_view bytes)
{
    const int descriptor = stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
    while (!bytes.empty()) {
        const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
        if (count > 0) {
            m_last_byte = bytes[static_cast<std::size_t>(count) - 1];
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            pollfd room{descriptor, POLLOUT, 0};
            ::poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int status_of_failed_write(int error, bool follows)
{
    constexpr int k_closed_output = 128 + SIGPIPE; ///< as a shell reports it
    if (error == EPIPE) {
        return follows ? k_closed_output : 0;
    }
    print_message(fmt::format("standard output: {}", std::strerror(error)));
    return static_cast<int>(ExitStatus::internal);
}

} // namespace gpuq::cli
