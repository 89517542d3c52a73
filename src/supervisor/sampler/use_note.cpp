// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/use_note.h"

#include "runs/insight/samples.h"
#include "telemetry/ledger.h"
#include "telemetry/noted_use.h"

namespace gpuq::supervisor {
namespace {

using std::chrono::milliseconds;

} // namespace

std::string note_use(Services& services, const Options& options, milliseconds allocated, JobEnd end)
{
    const auto store = services.store(options.state_dir);
    GpuTime measured;
    for (const NodeSample& node :
         store ? newest_samples(**store, options.key, options.link) : std::vector<NodeSample>{}) {
        measured += node.newest ? node.newest->gpu_time : GpuTime{};
    }
    if (measured.busy + measured.idle == milliseconds(0)) {
        return "nothing";
    }
    const std::string use = to_note(of_allocated(measured, allocated));
    const std::string comment = job_comment(options.key, options.link) + " " + use;
    return services.note(*options.job, comment, end) ? use : "";
}

} // namespace gpuq::supervisor
