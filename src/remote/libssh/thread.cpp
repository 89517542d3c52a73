// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/thread.h"

#include "io/signals_blocked.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace gpuq::remote {

Result<void> start_thread(std::function<void()> work)
{
    const SignalsBlocked blocked;
    try {
        std::thread(std::move(work)).detach();
    } catch (const std::system_error& failure) {
        return fail(Error::Kind::io, std::string("can't start a thread: ") + failure.what());
    }
    return {};
}

} // namespace gpuq::remote
