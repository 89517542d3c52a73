// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/thread.h"

#include <csignal>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace gpuq::remote {

Result<void> start_thread(std::function<void()> work)
{
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    Result<void> started;
    try {
        std::thread(std::move(work)).detach();
    } catch (const std::system_error& failure) {
        started = fail(Error::Kind::io, std::string("can't start a thread: ") + failure.what());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

} // namespace gpuq::remote
