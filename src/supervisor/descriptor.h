// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <utility>

namespace gpuq::supervisor {

/// Owns a file descriptor.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd)
        : m_fd(fd)
    {
    }
    Descriptor(Descriptor&& other) noexcept
        : m_fd(std::exchange(other.m_fd, -1))
    {
    }
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        reset(std::exchange(other.m_fd, -1));
        return *this;
    }
    ~Descriptor() { reset(); }

    int get() const { return m_fd; }
    explicit operator bool() const { return m_fd >= 0; }
    void reset(int fd = -1);

private:
    int m_fd = -1;
};

struct Pipe {
    Descriptor read, write;
};

/// Both ends are closed on exec. `io` when there are no descriptors left.
Result<Pipe> make_pipe();

void set_nonblocking(int fd);

/// Writes all of it to a blocking descriptor; false when that failed.
bool write_all(int fd, std::string_view bytes);

/// The text for errno, thread-safe.
std::string error_text(int error);

} // namespace gpuq::supervisor
