// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/raw_terminal.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// What exit() and a crash give back, without any object: the terminal is one of a process.
struct Saved {
    volatile sig_atomic_t active = 0;
    int descriptor = -1;
    termios modes{};
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no other
Saved g_saved;

constexpr std::array k_crashes = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                  SIGABRT, SIGSYS, SIGXCPU, SIGXFSZ};

void give_back()
{
    if (g_saved.active != 0) {
        g_saved.active = 0;
        ::tcsetattr(g_saved.descriptor, TCSANOW, &g_saved.modes);
    }
}

void on_crash(int number)
{
    give_back();
    ::raise(number); // the handler was for once
}

/// Once in a process.
void prepare_for_the_worst()
{
    static const bool k_prepared = [] {
        struct sigaction action = {};
        action.sa_handler = on_crash;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        for (const int number : k_crashes) {
            ::sigaction(number, &action, nullptr);
        }
        return std::atexit(give_back) == 0;
    }();
    (void)k_prepared;
}

void set_raw(int descriptor, termios modes)
{
    ::cfmakeraw(&modes);
    ::tcsetattr(descriptor, TCSANOW, &modes); // what was typed ahead is for the program
}

void write_soon(int descriptor, const std::string& bytes)
{
    std::size_t written = 0;
    pollfd room{descriptor, POLLOUT, 0};
    while (written < bytes.size() && ::poll(&room, 1, 200) > 0) {
        const ssize_t count = ::write(descriptor, bytes.data() + written, bytes.size() - written);
        if (count <= 0) {
            return;
        }
        written += static_cast<std::size_t>(count);
    }
}

} // namespace

bool RawTerminal::is_ours() const
{
    return ::isatty(m_keys) == 1 && ::tcgetpgrp(m_keys) == ::getpgrp();
}

void RawTerminal::enter()
{
    if (m_raw || !is_ours() || ::tcgetattr(m_keys, &g_saved.modes) != 0) {
        return;
    }
    prepare_for_the_worst();
    g_saved.descriptor = m_keys;
    g_saved.active = 1;
    m_raw = true;
    set_raw(m_keys, g_saved.modes);
}

void RawTerminal::leave()
{
    if (!m_raw) {
        return;
    }
    m_raw = false;
    if (::isatty(m_screen) == 1) {
        write_soon(m_screen, m_modes.to_undo());
    }
    give_back();
}

void RawTerminal::continued()
{
    if (m_raw && is_ours()) {
        set_raw(m_keys, g_saved.modes);
    }
}

std::optional<TerminalSize> RawTerminal::size() const
{
    for (const int descriptor : {m_screen, m_keys}) {
        winsize cells{};
        if (::ioctl(descriptor, TIOCGWINSZ, &cells) == 0 && cells.ws_row > 0 && cells.ws_col > 0) {
            return TerminalSize{cells.ws_row, cells.ws_col};
        }
    }
    return std::nullopt;
}

} // namespace gpuq::cli
