// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/program_terminal.h"

#include "term/plain_lines.h"

#include <algorithm>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// How long a program has the other size, so that it notices.
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

std::string ProgramTerminal::screen(const Backlog& backlog, TerminalSize size) const
{
    if (m_modes.on_other_screen()) {
        return m_modes.to_set() + "\x1b[H\x1b[2J";
    }
    const auto rows = static_cast<std::size_t>(std::max(size.rows, 2)) - 1;
    return plain_lines(recent_output(backlog), rows) + m_modes.to_set();
}

void ProgramTerminal::resize(const Program& program, TerminalSize size, bool anew)
{
    size.rows = std::max(size.rows, 1);
    size.columns = std::max(size.columns, 1);
    m_restore_size_at.reset();
    if (anew) {
        m_size = size;
        m_restore_size_at = m_loop.now() + k_other_size;
        m_loop.wake_at(*m_restore_size_at);
        size.rows += size.rows > 1 ? -1 : 1;
    }
    program.resize(size);
}

void ProgramTerminal::update(const Program& program)
{
    if (!m_restore_size_at) {
        return;
    }
    if (m_loop.now() < *m_restore_size_at) {
        m_loop.wake_at(*m_restore_size_at);
        return;
    }
    m_restore_size_at.reset();
    program.resize(m_size);
}

} // namespace gpuq::supervisor
