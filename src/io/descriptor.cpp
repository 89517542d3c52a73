// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <system_error>

namespace gpuq {
namespace {

// The headers of Enterprise Linux 8 define neither the system call number nor the flag; both are
// the same on all architectures.
#ifdef SYS_close_range
constexpr long k_close_range = SYS_close_range;
#else
constexpr long k_close_range = 436;
#endif
constexpr unsigned k_close_on_exec = 1U << 2;

/// Upper bound of the fallback loop: close_range(2) needs Linux 5.9, its CLOSE_RANGE_CLOEXEC flag
/// Linux 5.11.
constexpr int k_most = 65536;

template <typename Act>
void all_from(int first, unsigned flags, const Act& act)
{
    if (::syscall(k_close_range, static_cast<unsigned>(first), ~0U, flags) == 0) {
        return;
    }
    const long limit = ::sysconf(_SC_OPEN_MAX);
    const int end = limit < 0 ? k_most : static_cast<int>(std::min<long>(limit, k_most));
    for (int fd = first; fd < end; ++fd) {
        act(fd);
    }
}

} // namespace

Result<Pipe> make_pipe()
{
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail(Error::Kind::io,
                    fmt::format("can't make a pipe: {}", std::generic_category().message(errno)));
    }
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

bool write_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EAGAIN) {
            // Another process has made the shared file description non-blocking.
            pollfd wait{fd, POLLOUT, 0};
            ::poll(&wait, 1, -1);
            continue;
        }
        if (written == 0 || (written < 0 && errno != EINTR)) {
            return false;
        }
        bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
    }
    return true;
}

void close_from(int first)
{
    all_from(first, 0, [](int fd) { ::close(fd); });
}

void close_on_exec_from(int first)
{
    all_from(first, k_close_on_exec, [](int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

} // namespace gpuq
