// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "supervisor/base/process_tree.h"
#include "term/plain_lines.h"

#include <algorithm>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// How long a program sees a different size, so that it notices: it redraws only after a change.
constexpr auto k_other_size = 60ms;
/// Amount of output searched for the lines that a new terminal shows.
constexpr std::size_t k_recent = 16 << 10;
constexpr std::string_view k_leaves_other_screen = "\x1b[?1049l";

/// The end of stdout's output in memory, from the beginning of a line.
std::string recent_output(const Backlog& backlog)
{
    std::string bytes;
    for (std::uint64_t i = backlog.last(); i > backlog.first() && bytes.size() < k_recent; --i) {
        bytes.insert(0, backlog.at(i - 1).bytes);
    }
    const bool all = bytes.size() < k_recent && backlog.begin()[0] == 0;
    bytes.erase(0, all ? 0 : bytes.find('\n') + 1);
    const std::size_t other = bytes.rfind(k_leaves_other_screen);
    bytes.erase(0, other == std::string::npos ? 0 : other + k_leaves_other_screen.size());
    return bytes;
}

} // namespace

/// A program on the alternate screen redraws it. For others the last lines are shown, and a line
/// editor redraws its own.
std::string Supervisor::screen(TerminalSize size) const
{
    if (m_modes.on_other_screen()) {
        return m_modes.to_set() + "\x1b[H\x1b[2J";
    }
    const auto rows = static_cast<std::size_t>(std::max(size.rows, 2)) - 1;
    return plain_lines(recent_output(m_backlog), rows) + m_modes.to_set();
}

void Supervisor::resize(TerminalSize size, bool anew)
{
    if (!m_program || m_observed.wait_status) {
        return;
    }
    size.rows = std::max(size.rows, 1);
    size.columns = std::max(size.columns, 1);
    m_restore_size_at.reset();
    if (anew) {
        m_size = size;
        m_restore_size_at = now() + k_other_size;
        m_loop.wake_at(*m_restore_size_at);
        size.rows += size.rows > 1 ? -1 : 1;
    }
    m_program->resize(size);
}

void Supervisor::restore_size()
{
    if (!m_restore_size_at) {
        return;
    }
    if (now() < *m_restore_size_at) {
        m_loop.wake_at(*m_restore_size_at);
        return;
    }
    m_restore_size_at.reset();
    m_program->resize(m_size);
}

/// Ends a shell that no client attaches to, or comes back to.
void Supervisor::check_abandoned()
{
    if (!m_abandonment || m_phase != Phase::running) {
        return;
    }
    const bool attached = m_clients->has_terminal();
    if (now() >= m_next_query || attached != m_was_attached) {
        m_was_attached = attached;
        const auto processes = attached ? std::vector<pid_t>{} : left_behind();
        if (const auto why = m_abandonment->check({now(), attached, m_clients->had_terminal(),
                                                   m_last_output_at, cpu_time_of(processes)})) {
            kill_for({Cause::stopped, *why}, m_options.patience.stop);
        }
        m_next_query = m_abandonment->next_check(now());
    }
    m_loop.wake_at(m_next_query);
}

} // namespace gpuq::supervisor
