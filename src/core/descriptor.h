// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string_view>
#include <unistd.h>
#include <utility>

namespace gpuq {

/// What an ordinary user may ask for with F_SETPIPE_SZ (pipe(7), pipe-max-size).
inline constexpr int k_largest_pipe = 1 << 20;

/// Owns a file descriptor and closes it; -1 is none. What close() answers is nobody's to use:
/// whose bytes must be on disk syncs first.
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
    /// Gives the descriptor away.
    int release() { return std::exchange(m_fd, -1); }
    /// Closes it and takes another, or none.
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

/// Both ends are closed on exec. `io` when there are no descriptors left.
Result<Pipe> make_pipe();

/// Writes all of it, however long that takes; false when that failed.
bool write_all(int fd, std::string_view bytes);

/// Closes all descriptors from `first` on, in a process that has just been forked: nothing but
/// system calls. Of a kernel without close_range(2), those below 65536.
void close_from(int first);

/// As close_from, but at the next exec.
void close_on_exec_from(int first);

} // namespace gpuq
