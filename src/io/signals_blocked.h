// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>

namespace gpuq {

/// Blocks all signals of the calling thread for as long as it exists, so that a process or thread
/// created meanwhile runs no handler of this process.
class SignalsBlocked {
public:
    SignalsBlocked()
    {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &m_before);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t m_before{};
};

} // namespace gpuq
