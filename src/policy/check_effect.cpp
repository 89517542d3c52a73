// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/check_effect.h"

#include "core/walltime.h"
#include "policy/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace gpuq::policy {
namespace {

using States = std::vector<Policy>;

/// A limit, and another one that also holds for its jobs.
struct Pair {
    Maybe<int> limit;
    Maybe<int> other;
};

struct Rivals {
    Pair (*of)(const Limits&, const Share&);
    bool (*binds)(int limit, int other);
    std::string (*text)(const Pair&);
};

constexpr std::array k_rivals = {
    Rivals{[](const Limits&, const Share& share) {
               return Pair{share.soft_gpus, share.gpus};
           },
           [](int soft, int hard) { return soft < hard; },
           [](const Pair& pair) {
               return fmt::format("soft_gpus {} never binds: gpus {} (line {}) does first",
                                  pair.limit->value, pair.other->value, pair.other->line);
           }},
    Rivals{[](const Limits&, const Share& share) {
               return Pair{share.jobs, share.queued};
           },
           [](int jobs, int queued) { return jobs <= queued; },
           [](const Pair& pair) {
               return fmt::format("jobs {} never binds: queued {} (line {}) does first",
                                  pair.limit->value, pair.other->value, pair.other->line);
           }},
    Rivals{[](const Limits& limits, const Share& share) {
               return Pair{limits.job.gpus, share.gpus};
           },
           [](int job, int share) { return job <= share; },
           [](const Pair& pair) {
               return fmt::format(
                   "a job may have {} GPUs, but the user or account only {} (line {})",
                   pair.limit->value, pair.other->value, pair.other->line);
           }},
};

void check_rivals(const States& states, std::size_t queue, Share Limits::*whose,
                  const Rivals& rivals, FindingList& findings)
{
    std::optional<Pair> found;
    for (const Policy& state : states) {
        const Limits& limits = state.queues[queue].limits;
        const Pair pair = rivals.of(limits, limits.*whose);
        if (!pair.limit) {
            continue;
        }
        if (!pair.other || rivals.binds(pair.limit->value, pair.other->value)) {
            return;
        }
        found = found ? found : pair;
    }
    if (found) {
        findings.error(*found->limit, "no-effect", rivals.text(*found));
    }
}

/// The first queue that leaves no job to a later one; null: there is none.
const Queue* shadow_of(const Policy& policy, std::size_t queue)
{
    for (std::size_t i = 0; i < queue; ++i) {
        if (covers(policy, policy.queues[i], policy.queues[queue])) {
            return &policy.queues[i];
        }
    }
    return nullptr;
}

void check_shadow(const States& states, std::size_t index, FindingList& findings)
{
    for (const Policy& state : states) {
        if (shadow_of(state, index) == nullptr) {
            return;
        }
    }
    const Queue& queue = states.front().queues[index];
    const Queue& first = *shadow_of(states.front(), index);
    findings.error(queue.line, "shadowed",
                   fmt::format("queue {} is never chosen by default: queue {} (line {}) accepts "
                               "every job that it accepts; put it first, or allow jobs that the "
                               "other refuses",
                               queue.name, first.name, first.line));
}

void check_idle(const States& states, std::size_t index, FindingList& findings)
{
    const Queue& queue = states.front().queues[index];
    const bool is_longer =
        queue.idle && std::all_of(states.begin(), states.end(), [&](const Policy& state) {
            return queue.idle->after.value >= state.queues[index].max_time.value;
        });
    if (is_longer) {
        findings.warn(queue.idle->after.line, "no-effect",
                      fmt::format("no run of queue {} lasts that long: its time is {}", queue.name,
                                  to_text(queue.max_time.value)));
    }
}

} // namespace

void check_effects(const States& states, FindingList& findings)
{
    for (std::size_t queue = 0; queue < states.front().queues.size(); ++queue) {
        check_shadow(states, queue, findings);
        check_idle(states, queue, findings);
        for (Share Limits::*whose : {&Limits::user, &Limits::account}) {
            for (const Rivals& rivals : k_rivals) {
                check_rivals(states, queue, whose, rivals, findings);
            }
        }
    }
}

} // namespace gpuq::policy
