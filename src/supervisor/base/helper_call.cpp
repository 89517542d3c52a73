// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/helper_call.h"

#include <utility>

namespace gpuq::supervisor {

bool HelperCall::start(const HelperWork& work, std::chrono::milliseconds patience)
{
    if (m_helper) {
        return true;
    }
    m_helper = Helper::execute(m_options, work);
    m_complete = false;
    m_until = m_loop.now() + patience;
    m_watch = m_loop.watch(
        [this] {
            return EventLoop::to_read(m_helper ? m_helper->answer() : -1, /*wanted=*/!m_complete);
        },
        [this] { m_complete = m_helper->read_more(); });
    return m_helper.has_value();
}

std::optional<std::string> HelperCall::take()
{
    if (!m_helper) {
        return std::nullopt;
    }
    if (!m_complete && m_loop.now() < m_until) {
        m_loop.wake_at(m_until);
        return std::nullopt;
    }
    return end();
}

void HelperCall::drop()
{
    if (m_helper) {
        end();
    }
}

std::string HelperCall::end()
{
    m_watch.reset();
    m_loop.wake_at(m_loop.now()); // the helper may have hidden the end of another process
    return std::exchange(m_helper, std::nullopt)->finish();
}

std::optional<pid_t> HelperCall::pid() const
{
    return m_helper ? std::optional(m_helper->pid()) : std::nullopt;
}

} // namespace gpuq::supervisor
