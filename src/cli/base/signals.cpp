// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

bool ignored(int number)
{
    struct sigaction action = {};
    return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

Signals::Signals()
{
    sigset_t mask;
    sigemptyset(&mask);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
        if (!ignored(number)) {
            sigaddset(&mask, number);
        }
    }
    sigaddset(&mask, SIGWINCH);
    sigaddset(&mask, SIGCONT);
    sigprocmask(SIG_BLOCK, &mask, &m_before);
    // Reading from the terminal in the background must fail rather than stop the process.
    std::signal(SIGTTIN, SIG_IGN);
    m_descriptor = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals()
{
    ::close(m_descriptor);
    sigprocmask(SIG_SETMASK, &m_before, nullptr);
}

std::optional<int> Signals::next()
{
    signalfd_siginfo info = {};
    while (::read(m_descriptor, &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number != SIGWINCH && number != SIGCONT) {
            return number;
        }
        m_terminal_changed = true;
    }
    return std::nullopt;
}

} // namespace gpuq::cli
