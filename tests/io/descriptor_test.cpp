// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/descriptor.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

namespace gpuq {
namespace {

enum class Kernel { ours, before_5_9 };

/// Disables close_range(2) in this process, as on Enterprise Linux 8.
bool forget_close_range()
{
    std::array filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           ::syscall(436, 3U, 3U, 0U) == -1 && errno == ENOSYS;
}

class DescriptorsFrom : public testing::TestWithParam<Kernel> {
protected:
    /// Result of `check` in a child process with that kernel and with descriptors 0 to 9 open.
    static bool in_a_process(bool (*check)())
    {
        const pid_t child = ::fork();
        if (child == 0) {
            const int null = ::open("/dev/null", O_RDWR);
            for (int fd = 0; fd < 10; ++fd) {
                ::dup2(null, fd);
            }
            const bool ready = GetParam() == Kernel::ours || forget_close_range();
            ::_exit(ready && check() ? 0 : 1);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        return status == 0;
    }

    static int flags(int fd) { return ::fcntl(fd, F_GETFD); }
};

TEST_P(DescriptorsFrom, are_closed)
{
    EXPECT_TRUE(in_a_process([] {
        close_from(5);
        return flags(4) == 0 && flags(5) == -1 && flags(9) == -1;
    }));
}

TEST_P(DescriptorsFrom, are_closed_at_the_next_exec)
{
    EXPECT_TRUE(in_a_process([] {
        close_on_exec_from(5);
        return flags(4) == 0 && flags(5) == FD_CLOEXEC && flags(9) == FD_CLOEXEC;
    }));
}

INSTANTIATE_TEST_SUITE_P(kernels, DescriptorsFrom,
                         testing::Values(Kernel::ours, Kernel::before_5_9), [](const auto& kernel) {
                             return kernel.param == Kernel::ours ? "ours" : "before_5_9";
                         });

TEST(Descriptor, closes_what_it_owns_once)
{
    const int fd = ::open("/dev/null", O_RDONLY);
    {
        Descriptor one(fd);
        const Descriptor other(std::move(one));
        EXPECT_FALSE(one); // NOLINT(bugprone-use-after-move): a moved-from descriptor is empty
        EXPECT_EQ(other.get(), fd);
    }
    EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(WriteAll, waits_for_a_reader_also_where_the_descriptor_does_not)
{
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe) << pipe.error().text;
    ASSERT_EQ(::fcntl(pipe->write.get(), F_SETFL, O_NONBLOCK), 0);
    const std::string bytes(3 * k_largest_pipe + 1, 'x');
    bool written = false;
    std::thread writer([&] {
        written = write_all(pipe->write.get(), bytes);
        pipe->write.reset();
    });
    std::string read;
    std::array<char, 4096> piece{};
    for (ssize_t size = 0; (size = ::read(pipe->read.get(), piece.data(), piece.size())) > 0;) {
        read.append(piece.data(), static_cast<std::size_t>(size));
    }
    writer.join();
    EXPECT_TRUE(written);
    EXPECT_EQ(read, bytes);
}

TEST(WriteAll, says_when_it_could_not)
{
    EXPECT_FALSE(write_all(-1, "x"));
    const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    EXPECT_FALSE(write_all(full.get(), "x"));
}

TEST(MakePipe, closes_both_ends_at_exec)
{
    const auto pipe = make_pipe();
    ASSERT_TRUE(pipe) << pipe.error().text;
    for (const int fd : {pipe->read.get(), pipe->write.get()}) {
        EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
    }
}

} // namespace
} // namespace gpuq
