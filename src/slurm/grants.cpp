// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/grants.h"

#include "ports/accounting.h"
#include "slurm/bounded.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace gpuq {
namespace slurm {
namespace {

/// One row for each account and each user in it: about ten thousand at the largest sites.
constexpr std::chrono::seconds k_patience{20};
/// Maximum depth of the account tree, so that a broken one does not cause an endless loop.
constexpr int k_deepest = 64;
constexpr std::string_view k_nothing = "-";

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
        made.granted = std::chrono::minutes(limits[gpus]);
    }
    const bool has_usage = record.usage != nullptr && record.usage->usage_tres_raw != nullptr &&
                           gpus < record.usage->tres_cnt;
    if (counted && has_usage) {
        made.used =
            std::chrono::seconds(static_cast<std::int64_t>(record.usage->usage_tres_raw[gpus]));
    }
    return made;
}

/// Runs in the child. Returns `ok` and a line for each association, `none` if GPUs are not
/// accounted for, or `error CODE`.
std::string associations_query()
{
    const MessageCapture capture{"associations"};
    assoc_mgr_info_request_msg_t request{};
    request.flags = ASSOC_MGR_INFO_FLAG_ASSOC;
    assoc_mgr_info_msg_t* answer = nullptr;
    if (slurm_load_assoc_mgr_info(&request, &answer) != SLURM_SUCCESS) {
        return fmt::format("error {}", errno);
    }
    std::uint32_t gpus = 0;
    while (gpus < answer->tres_cnt && text(answer->tres_names[gpus]) != "gres/gpu") {
        ++gpus;
    }
    if (gpus == answer->tres_cnt || answer->assoc_list == nullptr) {
        return "none";
    }
    const bool counted = counts_use();
    std::string lines = "ok\n";
    auto* const iterator = slurm_list_iterator_create(answer->assoc_list);
    while (const void* item = slurm_list_next(iterator)) {
        lines +=
            to_line(association_of(*static_cast<const slurmdb_assoc_rec_t*>(item), gpus, counted));
    }
    slurm_list_iterator_destroy(iterator);
    return lines; // not freed: the child exits
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
    if (from.granted) {
        grants.limits.push_back({std::move(holder), *from.granted, from.used});
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

std::string to_line(const Association& association)
{
    const auto number = [](const auto& value) {
        return value ? std::to_string(value->count()) : std::string(k_nothing);
    };
    return fmt::format("{}\t{}\t{}\t{}\t{}\n", association.account, association.user,
                       association.parent, number(association.granted), number(association.used));
}

Association association_of_line(const std::string& line)
{
    std::istringstream stream(line);
    const auto next = [&] {
        std::string word;
        std::getline(stream, word, '\t');
        return word;
    };
    Association made;
    made.account = next();
    made.user = next();
    made.parent = next();
    if (const std::string word = next(); !word.empty() && word != k_nothing) {
        made.granted = std::chrono::minutes(std::atoll(word.c_str()));
    }
    if (const std::string word = next(); !word.empty() && word != k_nothing) {
        made.used = std::chrono::seconds(std::atoll(word.c_str()));
    }
    return made;
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
    TRY(slurm::needs_accounting());
    const auto answer = slurm::in_a_child(slurm::associations_query, slurm::k_patience);
    if (answer == "none") {
        return fail(Error::Kind::unreachable, "this Slurm does not account for GPUs "
                                              "(AccountingStorageTRES=gres/gpu)");
    }
    if (!answer || !answer->starts_with("ok\n")) {
        const int code = answer ? std::atoi(answer->c_str() + answer->find(' ') + 1) : 0;
        return fail(Error::Kind::unreachable,
                    fmt::format("Slurm's controller does not return the limits of accounts{}{}",
                                code == 0 ? "" : ": ", code == 0 ? "" : slurm_strerror(code)));
    }
    std::vector<slurm::Association> associations;
    std::istringstream lines(answer->substr(3));
    for (std::string line; std::getline(lines, line);) {
        associations.push_back(slurm::association_of_line(line));
    }
    auto grants = slurm::grants_of(user, associations);
    if (grants.empty()) {
        return fail(Error::Kind::missing, fmt::format("Slurm knows no account of '{}'", user));
    }
    return grants;
}

} // namespace gpuq
