// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <poll.h>
#include <vector>

namespace gpuq::supervisor {

/// What one round of the loop waits for.
class PollSet {
public:
    /// An index for ready(). `events` may be 0: then only for the other end's leaving.
    std::size_t add(int fd, short events)
    {
        m_fds.push_back({fd, events, 0});
        return m_fds.size() - 1;
    }
    short ready(std::optional<std::size_t> index) const
    {
        return index ? m_fds[*index].revents : short{0};
    }
    void wait(std::chrono::milliseconds timeout)
    {
        if (::poll(m_fds.data(), m_fds.size(), static_cast<int>(timeout.count())) < 0) {
            for (pollfd& each : m_fds) {
                each.revents = 0;
            }
        }
    }
    void clear() { m_fds.clear(); }

private:
    std::vector<pollfd> m_fds;
};

} // namespace gpuq::supervisor
