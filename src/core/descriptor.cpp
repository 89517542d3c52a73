// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/descriptor.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/syscall.h>

namespace gpuq {
namespace {

// Enterprise Linux 8 has neither the number nor the flag in its headers; they are the same
// everywhere.
#ifdef SYS_close_range
constexpr long k_close_range = SYS_close_range;
#else
constexpr long k_close_range = 436;
#endif
constexpr unsigned k_close_on_exec = 1U << 2;

/// A kernel before 5.9 does not know the call, one before 5.11 not the flag.
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

void close_from(int first)
{
    all_from(first, 0, [](int fd) { ::close(fd); });
}

void close_on_exec_from(int first)
{
    all_from(first, k_close_on_exec, [](int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

} // namespace gpuq
