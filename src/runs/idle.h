// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"
#include "telemetry/reclaim.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

/// The records on disk about a policy's rule for idle GPUs: the rule that a run was submitted
/// under, its owner's exemption, and the supervisor's findings. telemetry/reclaim.h decides.
namespace gpuq {

/// runs/KEY/idle.json, written together with run.json before the run is submitted, so that the node
/// needs no policy. One rule per partition, because Slurm chooses among several, and an operator
/// may move a job.
using IdleRules = std::map<std::string, telemetry::IdleRule>;
constexpr const char* k_idle_rules = "idle.json";
std::string idle_rules_json(const RunKey& key);
std::string to_json(const IdleRules& rules);
Result<IdleRules> idle_rules_from_json(std::string_view text);

/// runs/KEY/inbox/exempt.json, written by `gpuq exempt`.
struct Exemption {
    std::string by; ///< user@host
    std::string reason;
    Time at;
    bool operator==(const Exemption&) const = default;
};
constexpr const char* k_exempt_request = "exempt.json";
constexpr std::size_t k_longest_reason = 500;
std::string exempt_json(const RunKey& key);
std::string to_json(const Exemption& exemption);
Result<Exemption> exemption_from_json(std::string_view text);

/// runs/KEY/link-N/idle.json, written by the supervisor: its latest finding about the GPUs, and the
/// evidence.
struct IdleFinding {
    enum class State {
        warned,   ///< its GPUs will be released in `left`
        works,    ///< it was warned, and works again
        released, ///< its GPUs were taken back
        put_off,  ///< due, but `max_per_hour` runs had been released in this hour
        exempt,   ///< it would have been warned
    };
    State state = State::warned;
    Time at;
    std::string partition;
    telemetry::IdleRule rule;
    std::chrono::milliseconds left{0};
    telemetry::IdleEvidence evidence;
    bool operator==(const IdleFinding&) const = default;
};
constexpr const char* k_idle_finding = "idle.json";
std::string idle_finding_json(const RunKey& key, LinkNumber link);
std::string_view word(IdleFinding::State state);
std::string to_json(const IdleFinding& finding);
Result<IdleFinding> idle_finding_from_json(std::string_view text);

/// The detail of a released run's ending: `released: its GPUs were unused for 30 min`.
std::string released_detail(std::chrono::milliseconds unused);
/// The warning for the run's users: `idle for 25 min: ... in 5 min unless it works`.
std::string idle_warning(const IdleFinding& finding, const std::string& run);
/// One line for `show`. The remaining time of a warned run counts down to `now`, as far as the
/// clocks of its node and of this host agree; unset: the run has ended, no countdown.
std::string describe(const IdleFinding& finding, std::optional<Time> now);
std::string describe(const Exemption& exemption);

/// The records of a run. Unset if a file is missing or can't be read.
struct IdleRecords {
    std::optional<Exemption> exemption;
    std::optional<IdleFinding> finding; ///< the link's
};
IdleRecords idle_records(Store& store, const RunKey& key, LinkNumber link);

} // namespace gpuq
