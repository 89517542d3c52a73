// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/held_verb.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr EventLoop::Span k_after_hang_up = 10s;
constexpr EventLoop::Span k_after_term = 5s;
constexpr int k_redraw_ms = 60; ///< time for a program to notice a size

/// Signals the verb's group, or only itself if it has not created its own group yet.
void signal_group(pid_t group, pid_t pid, int number)
{
    if (::kill(-group, number) != 0) {
        ::kill(pid, number);
    }
}

} // namespace

HeldVerb::HeldVerb(EventLoop& loop, const std::function<bool(const frames::Frame&)>& send_frame)
    : m_kill_timer(loop, [this] { hang_up(); })
    , m_output(loop)
    , m_facts(loop, m_output, send_frame)
    , m_input(loop, send_frame)
{
}

Result<void> HeldVerb::start(const std::string& program, const frames::Start& start)
{
    TRY_ASSIGN(m_process, start_verb(program, start));
    VerbProcess& verb = *m_process;
    for (const Descriptor* each :
         {&verb.terminal, &verb.input, &verb.out, &verb.err, &verb.facts}) {
        if (*each) {
            set_nonblocking(each->get());
        }
    }
    // A terminal carries one of the streams; the other, if both are terminals, is the same.
    const int terminal = verb.terminal.get();
    const bool shows_out = start.terminals[1];
    m_output.begin({verb.out    ? verb.out.get()
                    : shows_out ? terminal
                                : -1,
                    verb.err    ? verb.err.get()
                    : shows_out ? -1
                                : terminal});
    m_input.begin(std::move(verb.input), terminal, start.raw, start.no_input);
    m_facts.begin(std::move(verb.facts));
    return {};
}

bool HeldVerb::on_child(pid_t pid, int wait_status)
{
    if (!m_process || pid != m_process->pid) {
        return false;
    }
    m_status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    m_output.verb_ended();
    m_facts.read();
    return true;
}

Result<void> HeldVerb::take(const frames::Input& input)
{
    return m_process ? m_input.take(input)
                     : fail(Error::Kind::internal, "input at an unexpected offset");
}

std::uint64_t HeldVerb::input_read() const
{
    const std::uint64_t read = m_input.read_by_verb();
    return read - std::min(read, m_facts.left());
}

void HeldVerb::signal(int number) const
{
    if (!is_running()) {
        return;
    }
    const pid_t group = m_process->terminal ? ::tcgetpgrp(m_process->terminal.get()) : 0;
    signal_group(group > 0 ? group : m_process->pid, m_process->pid, number);
}

void HeldVerb::resize(const frames::Resize& resize) const
{
    if (!m_process || !m_process->terminal) {
        return;
    }
    winsize size{};
    size.ws_row = static_cast<unsigned short>(resize.size.rows);
    size.ws_col = static_cast<unsigned short>(resize.size.columns);
    if (resize.redraw && size.ws_row > 1) {
        // Programs redraw only when the size has changed.
        winsize other = size;
        other.ws_row -= 1;
        ::ioctl(m_process->terminal.get(), TIOCSWINSZ, &other);
        ::poll(nullptr, 0, k_redraw_ms);
    }
    ::ioctl(m_process->terminal.get(), TIOCSWINSZ, &size);
}

void HeldVerb::hang_up()
{
    if (!is_running()) {
        return;
    }
    constexpr std::array k_signals = {SIGHUP, SIGTERM, SIGKILL};
    const std::size_t step = std::min<std::size_t>(m_hang_ups, k_signals.size() - 1);
    signal_group(m_process->pid, m_process->pid, k_signals[step]);
    m_hang_ups += 1;
    m_kill_timer.start_in(step == 0 ? k_after_hang_up : k_after_term);
}

} // namespace gpuq::remote
