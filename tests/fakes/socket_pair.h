// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <sys/socket.h>

namespace gpuq {

/// Two connected stream sockets.
struct SocketPair {
    Descriptor one, other;
};

/// `flags`: SOCK_NONBLOCK or 0.
inline SocketPair socket_pair(int flags)
{
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends.data()), 0);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

inline Descriptor copy_of(const Descriptor& descriptor)
{
    return Descriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
}

} // namespace gpuq
