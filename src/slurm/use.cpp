// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/use.h"

#include "core/key.h"
#include "core/number.h"
#include "ports/accounting.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/jobs.h"
#include "slurm/list.h"
#include "slurm/query.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include <pwd.h>

namespace gpuq {
namespace slurm {
namespace {

constexpr std::string_view k_gres = "gres/";
constexpr std::string_view k_gpus = "gres/gpu";
constexpr std::string_view k_root = "root"; ///< the account above all others
/// In seconds.
constexpr std::int64_t k_just_ended = 5;

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

std::int64_t seconds_of(Time time)
{
    return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

/// Names for a slurmdbd request, and a list that points to them.
class NameList {
public:
    explicit NameList(std::vector<std::string> names)
        : m_names(std::move(names))
        , m_list(slurm_list_create(nullptr))
    {
        for (std::string& name : m_names) {
            slurm_list_append(m_list.get(), name.data());
        }
    }
    List get_or_null() const { return m_names.empty() ? nullptr : m_list.get(); }

private:
    std::vector<std::string> m_names;
    OwnedList m_list;
};

/// slurmdbd stores the users of jobs by uid; in its SQL a name would become 0, which is root.
/// `missing` names the first user unknown to this host.
Result<std::vector<std::string>> uids_of(const std::vector<std::string>& users)
{
    std::vector<std::string> uids;
    for (const std::string& user : users) {
        const passwd* const entry = ::getpwnam(user.c_str());
        if (entry == nullptr) {
            return fail(Error::Kind::missing, fmt::format("this host knows no user '{}'", user));
        }
        uids.push_back(std::to_string(entry->pw_uid));
    }
    return uids;
}

TresNames tres_names(void* connection)
{
    slurmdb_tres_cond_t condition{};
    const OwnedList list(slurmdb_tres_get(connection, &condition));
    TresNames names;
    if (list) {
        for_each<slurmdb_tres_rec_t>(list.get(), [&](const slurmdb_tres_rec_t& record) {
            const std::string type = text(record.type);
            const std::string name = text(record.name);
            names[record.id] = name.empty() ? type : type + "/" + name;
        });
    }
    return names;
}

/// Removes and returns the next `ID=NUMBER` of a resource list in slurmdbd's format.
std::optional<std::pair<std::uint32_t, std::uint64_t>> next_item(std::string_view& resources)
{
    while (!resources.empty()) {
        const std::string_view item = resources.substr(0, resources.find(','));
        resources.remove_prefix(std::min(item.size() + 1, resources.size()));
        const auto equals = item.find('=');
        const auto id = whole_number(item.substr(0, equals));
        const auto number = whole_number(item.substr(std::min(equals, item.size() - 1) + 1));
        if (id && number && *id <= UINT32_MAX) {
            return std::pair(static_cast<std::uint32_t>(*id), *number);
        }
    }
    return std::nullopt;
}

JobUse use_of(const slurmdb_job_rec_t& record, const TresNames& names)
{
    JobUse use;
    use.id = JobId{record.jobid};
    use.user = text(record.user);
    use.account = text(record.account);
    use.queue = text(record.partition);
    use.elapsed = std::chrono::seconds(record.elapsed);
    add_gpus(use, text(record.tres_alloc_str), names);
    return use;
}

/// A start at the beginning of the span is one that slurmdbd has truncated.
std::optional<std::chrono::seconds> wait_of(const slurmdb_job_rec_t& record,
                                            const UseQuestion& question)
{
    const auto started = time_of(record.start);
    const auto eligible = time_of(record.eligible);
    if (!started || !eligible || record.start <= seconds_of(question.from)) {
        return std::nullopt;
    }
    const std::int64_t since = std::max(record.eligible, record.submit);
    return std::chrono::seconds(std::max<std::int64_t>(record.start - since, 0));
}

/// The parent of each account that slurmdbd shows; empty for the root.
std::map<std::string, std::string> parents_of_accounts(void* connection)
{
    const NameList clusters({cluster_name()});
    const NameList no_user({""}); // the associations of the accounts themselves
    slurmdb_assoc_cond_t condition{};
    condition.cluster_list = clusters.get_or_null();
    condition.user_list = no_user.get_or_null();
    const OwnedList list(slurmdb_associations_get(connection, &condition));
    std::map<std::string, std::string> parents;
    if (list) {
        for_each<slurmdb_assoc_rec_t>(list.get(), [&](const slurmdb_assoc_rec_t& record) {
            parents[text(record.acct)] = text(record.parent_acct);
        });
    }
    return parents;
}

/// Step records contain memory in bytes.
std::optional<std::uint64_t> most_memory_mib(List steps, const TresNames& names)
{
    std::optional<std::uint64_t> most;
    if (steps != nullptr) {
        for_each<slurmdb_step_rec_t>(steps, [&](const slurmdb_step_rec_t& step) {
            const auto bytes = memory_in(text(step.stats.tres_usage_in_tot), names);
            if (bytes) {
                most = std::max(most.value_or(0), *bytes >> 20);
            }
        });
    }
    return most;
}

UseRecord record_of(const slurmdb_job_rec_t& record, const TresNames& names,
                    const UseQuestion& question)
{
    UseRecord record_use;
    record_use.use = use_of(record, names);
    // slurmdbd truncates both times to the span. For a span up to now, a job that has just ended
    // appears to end with the span.
    const std::int64_t to = seconds_of(question.to);
    const bool is_over = gpuq::is_over(state_of(record.state)) && record.end != 0;
    record_use.whole = is_over && record.start > seconds_of(question.from) &&
                       (record.end < to || to + k_just_ended >= std::time(nullptr));
    const std::string comment = text(record.derived_es);
    const bool is_ours = key_in_comment(comment) && comment == sanitised(comment);
    record_use.comment = is_ours ? comment : "";
    record_use.memory_mib = memory_in(text(record.tres_alloc_str), names);
    record_use.most_memory_mib = most_memory_mib(record.steps, names);
    record_use.waited = wait_of(record, question);
    return record_use;
}

/// The first of `accounts` that slurmdbd has never known; nullopt if there is none.
std::optional<std::string> unknown_account(void* connection,
                                           const std::vector<std::string>& accounts)
{
    const NameList names(accounts);
    slurmdb_assoc_cond_t associations{};
    associations.acct_list = names.get_or_null();
    slurmdb_account_cond_t condition{};
    condition.assoc_cond = &associations;
    with_deleted(condition);
    const OwnedList list(slurmdb_accounts_get(connection, &condition));
    if (!list) {
        return std::nullopt; // the request for the jobs will fail with the reason
    }
    std::set<std::string> known;
    for_each<slurmdb_account_rec_t>(
        list.get(), [&](const slurmdb_account_rec_t& record) { known.insert(text(record.name)); });
    const auto found = std::find_if(accounts.begin(), accounts.end(),
                                    [&](const std::string& name) { return !known.contains(name); });
    return found == accounts.end() ? std::nullopt : std::optional(*found);
}

} // namespace

void add_gpus(JobUse& use, std::string_view allocation, const TresNames& names)
{
    while (const auto item = next_item(allocation)) {
        const auto name = names.find(item->first);
        if (name == names.end() || !name->second.starts_with(k_gres)) {
            continue;
        }
        const int count = static_cast<int>(std::min<std::uint64_t>(item->second, INT32_MAX));
        if (const auto kind = share_kind(std::string_view(name->second).substr(k_gres.size()))) {
            use.share = count > 0 ? std::optional(GpuShare{*kind, count, {}, {}, {}}) : use.share;
            continue;
        }
        if (!name->second.starts_with(k_gpus)) {
            continue;
        }
        if (name->second == k_gpus) {
            use.gpus = count;
        } else if (name->second[k_gpus.size()] == ':') {
            use.models.emplace_back(name->second.substr(k_gpus.size() + 1), count);
        }
    }
}

std::string lab_of(const std::string& account, const std::map<std::string, std::string>& parents)
{
    constexpr int k_deepest = 64; // a broken tree must not cause an endless loop
    std::string lab = account;
    for (int i = 0; i < k_deepest; ++i) {
        const auto found = parents.find(lab);
        if (found == parents.end()) {
            return "";
        }
        if (found->second.empty() || found->second == k_root) {
            return lab;
        }
        lab = found->second;
    }
    return "";
}

std::optional<std::uint64_t> memory_in(std::string_view resources, const TresNames& names)
{
    // Slurm's values for "none" are just below 2^64.
    constexpr std::uint64_t k_most = std::uint64_t{1} << 60;
    while (const auto item = next_item(resources)) {
        const auto name = names.find(item->first);
        if (name != names.end() && name->second == "mem" && item->second < k_most) {
            return item->second;
        }
    }
    return std::nullopt;
}

Result<std::vector<UseRecord>> answer(const UseQuery& query)
{
    const MessageCapture capture{"jobs in accounting"};
    const UseQuestion& question = query.question;
    TRY_ASSIGN(const auto uids, uids_of(question.users));
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    if (connection == nullptr) {
        return unanswered(QueryKind::use, errno);
    }
    if (!question.accounts.empty()) {
        if (const auto unknown = unknown_account(connection, question.accounts)) {
            return fail(Error::Kind::missing,
                        fmt::format("Slurm's accounting knows no account '{}', or does not show it "
                                    "to you (PrivateData in slurmdbd.conf)",
                                    *unknown));
        }
    }
    const NameList clusters({cluster_name()});
    const NameList users(uids);
    const NameList accounts(question.accounts);
    slurmdb_job_cond_t condition{};
    condition.cluster_list = clusters.get_or_null();
    condition.userid_list = users.get_or_null();
    condition.acct_list = accounts.get_or_null();
    condition.usage_start = seconds_of(question.from);
    condition.usage_end = seconds_of(question.to);
    // Truncated to the span, with a separate record for each attempt of a requeued job.
    condition.flags = JOBCOND_FLAG_DUP;
    if (query.steps == Steps::leave_out) {
        condition.flags |= JOBCOND_FLAG_NO_STEP;
    }
    condition.db_flags = NO_VAL;
    const TresNames names = tres_names(connection);
    const auto parents =
        question.with_labs ? parents_of_accounts(connection) : std::map<std::string, std::string>{};
    errno = 0;
    const OwnedList list(slurmdb_jobs_get(connection, &condition));
    if (!list || names.empty()) {
        return unanswered(QueryKind::use, errno);
    }
    std::vector<UseRecord> records;
    for_each<slurmdb_job_rec_t>(list.get(), [&](const slurmdb_job_rec_t& job) {
        UseRecord record = record_of(job, names, question);
        record.use.lab = lab_of(record.use.account, parents);
        if ((record.use.gpus > 0 || record.use.share) && record.use.elapsed.count() > 0) {
            records.push_back(std::move(record));
        }
    });
    slurmdb_connection_close(&connection);
    return records;
}

} // namespace slurm

Result<std::vector<JobUse>> SlurmAccounting::use(const UseQuestion& question)
{
    TRY_ASSIGN(std::vector<UseRecord> records, use_records(question, Steps::leave_out));
    std::vector<JobUse> uses;
    for (UseRecord& record : records) {
        uses.push_back(std::move(record.use));
    }
    return uses;
}

Result<std::vector<UseRecord>> SlurmAccounting::use_records(const UseQuestion& question,
                                                            Steps steps)
{
    return slurm::ask(m_program, slurm::UseQuery{question, steps});
}

} // namespace gpuq
