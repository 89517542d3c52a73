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

/// What is on disk of a policy's rule on idle GPUs: the rule that a run was submitted under, its
/// owner's exemption, and what the supervisor has found. telemetry/reclaim.h judges.
namespace gpuq {

/// runs/KEY/idle.json, beside run.json and written before the run is submitted: the node needs no
/// policy. Rules by partition, for Slurm chooses among several, and an operator may move a job.
using IdleRules = std::map<std::string, telemetry::IdleRule>;
constexpr const char* k_idle_rules = "idle.json";
std::string idle_rules_json(const RunKey& key);
std::string to_json(const IdleRules& rules);
Result<IdleRules> idle_rules_from_json(std::string_view text);

/// runs/KEY/inbox/exempt.json, by `gpuq exempt`.
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

/// runs/KEY/link-N/idle.json, by the supervisor: what it has last said of the GPUs, and why.
struct IdleFinding {
    enum class State {
        warned,   ///< it is to be released in `left`
        works,    ///< it was warned, and works again
        released, ///< its GPUs were taken back
        put_off,  ///< it was time, but `max_per_hour` runs had been released in this hour
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

/// How a released run ended, as the detail of its ending: `released: its GPUs were unused for 30
/// min`.
std::string released_detail(std::chrono::milliseconds unused);
/// For the run's people: `idle for 25 min: ... in 5 min unless it works`.
std::string idle_warning(const IdleFinding& finding, const std::string& run);
/// One line for `show`. What a warned run has left goes down to `now`, as far as its node's clock
/// and this one agree; nothing: the run has ended, and nothing goes on.
std::string in_words(const IdleFinding& finding, std::optional<Time> now);
std::string in_words(const Exemption& exemption);

/// What the disk has of a run. Nothing where there is none, or it can not be read.
struct IdleRecords {
    std::optional<Exemption> exemption;
    std::optional<IdleFinding> finding; ///< of the link
};
IdleRecords idle_records(Store& store, const RunKey& key, LinkNumber link);

} // namespace gpuq
