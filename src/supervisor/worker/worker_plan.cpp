// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/number.h"
#include "supervisor/worker/worker.h"

namespace gpuq::supervisor {

Result<WorkerPlan>
parse_worker(const std::vector<std::string>& arguments,
             const std::function<std::optional<std::string>(const char*)>& variable)
{
    const auto sweep = RunKey::parse(arguments.size() == 3 ? arguments[2] : "");
    const auto run = RunKey::parse(variable("GPUQ_RUN_ID").value_or(""));
    const auto link = whole_number(variable("GPUQ_LINK").value_or(""));
    if (!sweep || !run || !link || *link == 0 || *link > 1'000'000) {
        return fail(Error::Kind::usage, "usage: gpuq-supervisor work STATE_DIR SWEEP, as the "
                                        "program of a run of gpuq");
    }
    WorkerPlan plan{*sweep,
                    {*run, LinkNumber{static_cast<int>(*link)}},
                    variable("GPUQ_STOP_FILE").value_or(""),
                    {},
                    {}};
    const auto deadline = whole_number(variable("GPUQ_DEADLINE").value_or(""));
    constexpr std::uint64_t k_latest = 1ULL << 40; // in microseconds, it fits into 64 bits
    if (deadline && *deadline < k_latest) {
        plan.deadline = Time(std::chrono::seconds(*deadline));
    }
    return plan;
}

} // namespace gpuq::supervisor
