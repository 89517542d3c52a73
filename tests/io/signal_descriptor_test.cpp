// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/signal_descriptor.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gpuq {
namespace {

TEST(SignalDescriptor, ReportsTheSignalsThatItBlocks)
{
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, nullptr, &before);
    const Descriptor signals = block_and_report({SIGUSR1, SIGUSR2});
    ASSERT_TRUE(signals);
    signalfd_siginfo info{};
    EXPECT_LT(::read(signals.get(), &info, sizeof info), 0) << "it would wait";
    ::kill(::getpid(), SIGUSR2);
    EXPECT_EQ(::read(signals.get(), &info, sizeof info), ssize_t{sizeof info});
    EXPECT_EQ(info.ssi_signo, std::uint32_t{SIGUSR2});
    EXPECT_NE(::fcntl(signals.get(), F_GETFD) & FD_CLOEXEC, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

} // namespace
} // namespace gpuq
