// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/signal_descriptor.h"

#include <csignal>
#include <sys/signalfd.h>

namespace gpuq {

Descriptor block_and_report(std::span<const int> signals)
{
    sigset_t set;
    sigemptyset(&set);
    for (const int number : signals) {
        sigaddset(&set, number);
    }
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    return Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Descriptor block_and_report(std::initializer_list<int> signals)
{
    return block_and_report(std::span(signals.begin(), signals.size()));
}

} // namespace gpuq
