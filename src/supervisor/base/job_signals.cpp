// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/job_signals.h"

#include <csignal>

namespace gpuq::supervisor {

std::vector<int> job_signals()
{
    return {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
            SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU};
}

void heed_no_job_signals()
{
    struct sigaction heed_not {};
    heed_not.sa_handler = [](int) {};
    heed_not.sa_flags = SA_RESTART;
    for (const int number : job_signals()) {
        ::sigaction(number, &heed_not, nullptr);
    }
}

} // namespace gpuq::supervisor
