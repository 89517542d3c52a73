// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string_view>
#include <unistd.h>
#include <utility>

namespace gpuq {

/// The largest size that F_SETPIPE_SZ accepts from an unprivileged user by default (pipe(7),
/// pipe-max-size).
inline constexpr int k_largest_pipe = 1 << 20;

/// Owns a file descriptor and closes it; -1 means none. The result of close() is ignored: a caller
/// that needs its data on disk must sync first.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd)
        : m_fd(fd)
    {
    }
    Descriptor(Descriptor&& other) noexcept
        : m_fd(other.release())
    {
    }
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        reset(other.release());
        return *this;
    }
    ~Descriptor() { reset(); }

    int get() const { return m_fd; }
    explicit operator bool() const { return m_fd >= 0; }
    /// Releases ownership without closing.
    int release() { return std::exchange(m_fd, -1); }
    /// Closes the descriptor and takes ownership of `fd`, if given.
    void reset(int fd = -1)
    {
        if (m_fd >= 0) {
            ::close(m_fd);
        }
        m_fd = fd;
    }

private:
    int m_fd = -1;
};

struct Pipe {
    Descriptor read, write;
};

/// Both ends are close-on-exec. `io` when no descriptors are left.
Result<Pipe> make_pipe();

/// Writes all bytes, blocking as long as necessary; false on error.
bool write_all(int fd, std::string_view bytes);

/// Closes all descriptors from `first` up. Only makes system calls, so it is safe in a child right
/// after fork(). Without close_range(2) in the kernel, only descriptors below 65536 are closed.
void close_from(int first);

/// Like close_from, but sets close-on-exec instead of closing.
void close_on_exec_from(int first);

} // namespace gpuq
