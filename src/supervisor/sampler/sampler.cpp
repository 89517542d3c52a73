// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/sampler.h"

#include "io/descriptor.h"
#include "supervisor/sampler/sampling.h"

#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr int k_nice = 10;

} // namespace

void become_sampler(const SamplerPlan& plan, pid_t root, int lifeline, int looks)
{
    std::string name = "gpuq-supervisor", verb = "sample", node = plan.node,
                variable = plan.variable, gpus = std::to_string(plan.gpus),
                below = std::to_string(root), looks_word = "looks";
    char* const argv[] = {name.data(),
                          verb.data(),
                          node.data(),
                          variable.data(),
                          gpus.data(),
                          below.data(),
                          looks >= 0 ? looks_word.data() : nullptr,
                          nullptr};
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpriority(PRIO_PROCESS, 0, k_nice);
    // Move them away from the numbers that they will be given.
    const int high_folder = ::fcntl(plan.folder, F_DUPFD, 16);
    const int high_lifeline = ::fcntl(lifeline, F_DUPFD, 16);
    const int high_looks = looks >= 0 ? ::fcntl(looks, F_DUPFD, 16) : -1;
    ::dup2(high_folder, k_sample_folder);
    ::dup2(high_lifeline, k_sample_lifeline);
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(null, fd);
    }
    if (high_looks >= 0) {
        ::dup2(high_looks, k_sample_looks);
    }
    close_from(high_looks >= 0 ? k_sample_looks + 1 : k_sample_lifeline + 1);
    ::execv(plan.executable.c_str(), argv);
    ::_exit(1);
}

void Sampler::start(const SamplerPlan& plan)
{
    auto lifeline = make_pipe();
    if (plan.executable.empty() || plan.folder < 0 || !lifeline) {
        return;
    }
    auto looks = plan.looks ? make_pipe() : Result<Pipe>(Pipe{});
    if (!looks) {
        looks = Pipe{};
    }
    for (const int end : {looks->read.get(), looks->write.get()}) {
        if (end >= 0) {
            set_nonblocking(end);
        }
    }
    const pid_t root = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
        become_sampler(plan, root, lifeline->read.get(), looks->write.get());
    }
    if (pid > 0) {
        m_pid = pid;
        m_started = true;
        m_lifeline = std::move(lifeline->write);
        m_looks = std::move(looks->read);
    }
}

} // namespace gpuq::supervisor
