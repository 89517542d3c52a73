// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/grants.h"

#include "ports/accounting.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/list.h"
#include "slurm/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gpuq {
namespace slurm {
namespace {

/// Maximum depth of the account tree, so that a broken one does not cause an endless loop.
constexpr int k_deepest = 64;

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

/// AccountingStorageEnforce=limits, as defined in Slurm's internal header.
constexpr std::uint16_t k_enforces_limits = 0x0002;

/// priority/basic, and a controller that enforces no limits, do not count use: it is always 0.
bool counts_use()
{
    slurm_conf_t* conf = nullptr;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) {
        return false;
    }
    const bool counts = text(conf->priority_type) != "priority/basic" &&
                        (conf->accounting_storage_enforce & k_enforces_limits) != 0;
    free_conf(conf);
    return counts;
}

Association association_of(const slurmdb_assoc_rec_t& record, std::uint32_t gpus, bool counted)
{
    Association made{text(record.acct), text(record.user), text(record.parent_acct), {}, {}};
    const std::uint64_t* limits = record.grp_tres_mins_ctld;
    if (limits != nullptr && limits[gpus] < INFINITE64 - 2) { // INFINITE64, NO_VAL64: no limit
        made.granted_minutes = limits[gpus];
    }
    const bool has_usage = record.usage != nullptr && record.usage->usage_tres_raw != nullptr &&
                           gpus < record.usage->tres_cnt;
    if (counted && has_usage) {
        made.used_seconds = static_cast<std::uint64_t>(record.usage->usage_tres_raw[gpus]);
    }
    return made;
}

/// The account's own row: the one without a user.
const Association* find_account(const std::vector<Association>& all, const std::string& name)
{
    const auto found = std::find_if(all.begin(), all.end(), [&](const Association& one) {
        return one.account == name && one.user.empty();
    });
    return found == all.end() ? nullptr : &*found;
}

void add(AccountGrants& grants, std::string holder, const Association& from)
{
    if (from.granted_minutes) {
        grants.limits.push_back({std::move(holder), std::chrono::minutes(*from.granted_minutes),
                                 from.used_seconds
                                     ? std::optional(std::chrono::seconds(*from.used_seconds))
                                     : std::nullopt});
    }
}

void add_from(AccountGrants& grants, const std::vector<Association>& all)
{
    std::string name = grants.account;
    for (int depth = 0; depth < k_deepest; ++depth) {
        const Association* const account = find_account(all, name);
        if (account == nullptr) {
            grants.complete = false;
            return;
        }
        add(grants, name, *account);
        if (account->parent.empty()) {
            return;
        }
        name = account->parent;
    }
}

} // namespace

Result<std::vector<Association>> answer(const AssociationsQuery&)
{
    const MessageCapture capture{"associations"};
    assoc_mgr_info_request_msg_t request{};
    request.flags = ASSOC_MGR_INFO_FLAG_ASSOC;
    assoc_mgr_info_msg_t* answer = nullptr;
    if (slurm_load_assoc_mgr_info(&request, &answer) != SLURM_SUCCESS) {
        return unanswered(QueryKind::associations, errno);
    }
    std::uint32_t gpus = 0;
    while (gpus < answer->tres_cnt && text(answer->tres_names[gpus]) != "gres/gpu") {
        ++gpus;
    }
    if (gpus == answer->tres_cnt || answer->assoc_list == nullptr) {
        return fail(Error::Kind::unreachable, "this Slurm does not account for GPUs "
                                              "(AccountingStorageTRES=gres/gpu)");
    }
    const bool counted = counts_use();
    std::vector<Association> all;
    for_each<slurmdb_assoc_rec_t>(answer->assoc_list, [&](const slurmdb_assoc_rec_t& record) {
        all.push_back(association_of(record, gpus, counted));
    });
    return all; // `answer` is not freed: this process exits
}

std::vector<AccountGrants> grants_of(const std::string& user,
                                     const std::vector<Association>& associations)
{
    std::vector<AccountGrants> all;
    for (const Association& one : associations) {
        if (one.user != user) {
            continue;
        }
        auto place = std::find_if(all.begin(), all.end(), [&](const AccountGrants& known) {
            return known.account == one.account; // a user has one row per partition
        });
        const bool is_new = place == all.end();
        if (is_new) {
            place = all.insert(place, AccountGrants{one.account, true, {}});
        }
        add(*place, fmt::format("{} in {}", user, one.account), one);
        if (is_new) {
            add_from(*place, associations);
        }
    }
    std::sort(all.begin(), all.end(),
              [](const AccountGrants& a, const AccountGrants& b) { return a.account < b.account; });
    return all;
}

} // namespace slurm

Result<std::vector<AccountGrants>> SlurmAccounting::grants(const std::string& user)
{
    TRY_ASSIGN(const auto associations, slurm::ask(m_program, slurm::AssociationsQuery{}));
    auto grants = slurm::grants_of(user, associations);
    if (grants.empty()) {
        return fail(Error::Kind::missing, fmt::format("Slurm knows no account of '{}'", user));
    }
    return grants;
}

} // namespace gpuq
