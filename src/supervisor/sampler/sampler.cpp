// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/sampler.h"

#include "io/subprocess.h"
#include "supervisor/sampler/sampling.h"

#include <unistd.h>

namespace gpuq::supervisor {

void Sampler::start(const SamplerPlan& plan)
{
    auto lifeline = make_pipe();
    if (plan.executable.empty() || plan.directory < 0 || !lifeline) {
        return;
    }
    Subprocess process{.argv = {"gpuq-supervisor", "sample", plan.node, plan.variable,
                                std::to_string(plan.gpus), std::to_string(::getpid())},
                       .executable = plan.executable,
                       .descriptors = {Subprocess::k_null, Subprocess::k_null, Subprocess::k_null,
                                       plan.directory, lifeline->read.get()}};
    static_assert(k_sample_directory == 3 && k_sample_lifeline == 4 && k_sample_activities == 5);
    auto activities = plan.activities ? make_pipe() : Result<Pipe>(Pipe{});
    if (activities && activities->write) {
        set_nonblocking(activities->read.get());
        set_nonblocking(activities->write.get());
        process.argv.emplace_back("looks");
        process.descriptors.push_back(activities->write.get());
    }
    if (const auto started = spawn(process)) {
        m_pid = started->pid;
        m_started = true;
        m_reconnect = std::move(lifeline->write);
        m_activities = activities ? std::move(activities->read) : Descriptor();
    }
}

} // namespace gpuq::supervisor
