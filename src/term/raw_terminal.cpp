// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/raw_terminal.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

/// Bytes that exit() and a crash write. A signal handler may run at any time: one is filled while
/// the other is valid.
struct Undo {
    std::array<char, 4096> bytes{};
    std::size_t size = 0;
};
/// State for exit() and a crash, which have no access to an object: a process has only one
/// terminal.
struct Saved {
    volatile sig_atomic_t active = 0;
    int descriptor = -1;
    termios modes{};
    int screen = -1;
    std::array<Undo, 2> undo;
    volatile sig_atomic_t which = 0;
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): for a signal handler
Saved g_saved;

/// Output may be incomplete: it may end within a string, and the next bytes would belong to it.
constexpr const char* k_end_of_string = "\x1b\\";

constexpr std::array k_crashes = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                  SIGABRT, SIGSYS, SIGXCPU, SIGXFSZ};

void give_back()
{
    if (g_saved.active != 0) {
        g_saved.active = 0;
        const Undo& undo = g_saved.undo.at(static_cast<std::size_t>(g_saved.which));
        if (undo.size > 0) {
            (void)!::write(g_saved.screen, undo.bytes.data(), undo.size);
        }
        ::tcsetattr(g_saved.descriptor, TCSANOW, &g_saved.modes);
    }
}

void on_crash(int number)
{
    give_back();
    ::raise(number); // SA_RESETHAND: now the default action
}

void keep_undo(int screen, const std::string& bytes)
{
    const auto other = static_cast<std::size_t>(1 - g_saved.which);
    Undo& undo = g_saved.undo.at(other);
    undo.size = bytes.size() <= undo.bytes.size() ? bytes.copy(undo.bytes.data(), bytes.size()) : 0;
    g_saved.screen = screen;
    g_saved.which = static_cast<sig_atomic_t>(other);
}

/// To be called before the first change; installs the handlers once.
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
    ::tcsetattr(descriptor, TCSANOW, &modes); // without discarding input: it is for the program
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

bool RawTerminal::save_modes() const
{
    if (g_saved.active == 0) {
        if (!is_ours() || ::tcgetattr(m_keys, &g_saved.modes) != 0) {
            return false;
        }
        prepare_for_the_worst();
        g_saved.descriptor = m_keys;
        g_saved.active = 1;
    }
    return true;
}

void RawTerminal::enter()
{
    if (!m_raw && save_modes()) {
        m_raw = true;
        set_raw(m_keys, g_saved.modes);
    }
}

std::string RawTerminal::undo() const
{
    const std::string modes = m_modes.to_undo();
    return modes.empty() && !m_modes.is_within_string() ? modes : k_end_of_string + modes;
}

void RawTerminal::leave()
{
    end_own_keys();
    if (!m_raw) {
        return;
    }
    m_raw = false;
    write_to_screen(undo());
    keep_undo(m_screen, {});
    give_back();
}

void RawTerminal::begin_own_keys()
{
    if (m_own_keys || !save_modes()) {
        return;
    }
    m_own_keys = true;
    continued();
    const std::string plain = m_modes.to_plain_keys();
    if (m_raw && !plain.empty()) {
        write_to_screen(k_end_of_string + plain);
    }
}

void RawTerminal::end_own_keys()
{
    if (!std::exchange(m_own_keys, false)) {
        return;
    }
    if (m_raw) {
        write_to_screen(m_modes.to_program_keys());
    } else {
        give_back();
    }
}

void RawTerminal::watch(std::string_view bytes)
{
    m_modes.feed(bytes);
    if (m_raw && std::exchange(m_undo_version, m_modes.version()) != m_modes.version() &&
        ::isatty(m_screen) == 1) {
        keep_undo(m_screen, undo());
    }
}

void RawTerminal::write_to_screen(const std::string& bytes) const
{
    if (!bytes.empty() && ::isatty(m_screen) == 1) {
        write_soon(m_screen, bytes);
    }
}

void RawTerminal::continued()
{
    if (m_raw && is_ours()) {
        set_raw(m_keys, g_saved.modes);
    } else if (m_own_keys && is_ours()) {
        termios modes = g_saved.modes;
        modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        ::tcsetattr(m_keys, TCSANOW, &modes);
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
