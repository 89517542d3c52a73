// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "policy/policy.h"

#include <optional>
#include <string>
#include <vector>

/// The rules of `gpuq reserve` (`reserve:`), which gpuq itself enforces. Pure.
namespace gpuq::policy {

struct ReserveRequest {
    std::string user;                  ///< who reserves
    std::vector<std::string> accounts; ///< of that user
    Time start;
    minutes duration{0};
    int gpus = 0; ///< of the nodes that would be reserved
};

/// A reservation that was made by `gpuq reserve`.
struct MadeReservation {
    Time start;
    Time end;
    int gpus = 0;
};

/// The reason, with the position of the rule, why the policy does not allow a reservation; nullopt
/// if it does. `others`: those that exist.
std::optional<std::string> refusal_of(const Policy& policy, const ReserveRequest& request,
                                      const std::vector<MadeReservation>& others, Time now);

/// The same for the user alone, before the accounts are known: whether they matter.
bool depends_on_accounts(const Policy& policy, const std::string& user);

/// The pools of which nodes with this model may be reserved, the preferred one first. Empty: any
/// model.
std::vector<const Pool*> reservable_pools(const Policy& policy, const std::string& model);

/// A partition that consists of the pool's nodes, or an empty text: no queue uses the pool.
std::string partition_of(const Policy& policy, const Pool& pool);

} // namespace gpuq::policy
