// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler.h"

#include "core/descriptor.h"
#include "supervisor/sampling.h"

#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr int k_nice = 10;

[[noreturn]] void become(const char* executable, char* const* argv, int folder, int lifeline)
{
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpriority(PRIO_PROCESS, 0, k_nice);
    // Out of the way of the places that they are to have.
    const int high_folder = ::fcntl(folder, F_DUPFD, 16);
    const int high_lifeline = ::fcntl(lifeline, F_DUPFD, 16);
    ::dup2(high_folder, k_sample_folder);
    ::dup2(high_lifeline, k_sample_lifeline);
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(null, fd);
    }
    close_from(k_sample_lifeline + 1);
    ::execv(executable, argv);
    ::_exit(1);
}

} // namespace

void Sampler::start(const Plan& plan)
{
    auto lifeline = make_pipe();
    if (plan.executable.empty() || plan.folder < 0 || !lifeline) {
        return;
    }
    std::string name = "gpuq-supervisor", verb = "sample", node = plan.node,
                variable = plan.variable, gpus = std::to_string(plan.gpus);
    char* const argv[] = {name.data(),     verb.data(), node.data(),
                          variable.data(), gpus.data(), nullptr};
    const pid_t pid = ::fork();
    if (pid == 0) {
        become(plan.executable.c_str(), argv, plan.folder, lifeline->read.get());
    }
    if (pid > 0) {
        m_pid = pid;
        m_started = true;
        m_lifeline = std::move(lifeline->write);
    }
}

} // namespace gpuq::supervisor
