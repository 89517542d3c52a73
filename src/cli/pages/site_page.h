// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"
#include "runs/insight/public_use.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/reservations.h"
#include "sim/accounted.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// The state of a site's GPUs for users without a login, as a page and as metrics. Pure, but for
/// the local time zone.
namespace gpuq::cli {

/// How far back the figures of use and of waits go.
constexpr std::chrono::hours k_site_day{24};
constexpr std::chrono::hours k_site_week{24 * 7};

/// The GPUs of one model in the whole cluster, as in GpuPool.
struct ModelGpus {
    std::string model;
    int total = 0;
    std::optional<int> free, in_use; ///< unset: not reported
    int down = 0;
    int blocked = 0;
    bool operator==(const ModelGpus&) const = default;
};
std::vector<ModelGpus> gpus_by_model(const std::vector<GpuPool>& pools);

/// GPUs that are reserved, now or later.
struct PlannedUse {
    Time from;
    Time until;
    int gpus = 0;
    std::string what; ///< contains a name only if the policy publishes it
    bool operator==(const PlannedUse&) const = default;
};
std::vector<PlannedUse> planned_use(const std::vector<ReservedGpus>& reserved,
                                    const policy::Policy* policy);

/// The waits without models; a queue with fewer users than that has no figures and no targets.
std::vector<sim::QueueWaits> public_waits(std::vector<sim::QueueWaits> queues,
                                          std::size_t least_users);

/// Data from accounting. All of it is free of names and figures that must not be shown.
struct SiteHistory {
    std::vector<sim::QueueWaits> day, week; ///< by time of submission
    /// In the last week; unset: too few users.
    std::optional<std::vector<PublicUse>> by_model;
    std::optional<std::vector<PublicUse>> by_name; ///< by lab or account
};

struct SiteState {
    std::string cluster;
    Time at;
    policy::Publish publish;
    std::vector<ModelGpus> gpus;
    std::optional<std::vector<PlannedUse>> planned; ///< unset: unknown
    std::optional<SiteHistory> history;             ///< unset: unknown
};

/// A page that reloads itself.
std::string site_page(const SiteState& state);

/// Prometheus' text format. Unknown values have no sample.
std::string site_metrics(const SiteState& state);

} // namespace gpuq::cli
