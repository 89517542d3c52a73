// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <poll.h>
#include <vector>

namespace gpuq::supervisor {

/// The descriptors that one round of the loop waits for.
class PollSet {
public:
    /// Returns an index for ready(). `events` may be 0: then only a hangup is reported.
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
        if (::poll(m_fds.data(), m_fds.size(), static_cast<int>(timeout.count())) >= 0) {
            return;
        }
        const bool too_many = errno == EINVAL;
        for (pollfd& each : m_fds) {
            each.revents = 0;
        }
        if (too_many) {
            poll_one_by_one();
        }
    }
    void clear() { m_fds.clear(); }

private:
    /// poll() accepts no more than RLIMIT_NOFILE descriptors, and that limit may have been lowered.
    void poll_one_by_one()
    {
        constexpr int k_pause_ms = 10;
        ::poll(nullptr, 0, k_pause_ms);
        for (pollfd& each : m_fds) {
            ::poll(&each, 1, 0);
        }
    }

    std::vector<pollfd> m_fds;
};

} // namespace gpuq::supervisor
