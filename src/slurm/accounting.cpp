// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/accounting.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/jobs.h"
#include "slurm/list.h"
#include "slurm/query.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace gpuq {
namespace {

/// Maximum wait for slurmctld to report a job's end to slurmdbd, which it does with a delay.
constexpr std::chrono::seconds k_end_comes_within{3};
constexpr std::chrono::milliseconds k_between_queries{50};

using slurm::OwnedList;

/// The condition "job `id` of this cluster"; contains pointers into itself.
class OneJob {
public:
    explicit OneJob(JobId id)
        : m_cluster(slurm::cluster_name())
        , m_steps(slurm_list_create(nullptr))
        , m_clusters(slurm_list_create(nullptr))
    {
        m_step.array_task_id = NO_VAL;
        m_step.het_job_offset = NO_VAL;
        m_step.step_id = slurm::whole_job(id.value);
        slurm_list_append(m_steps.get(), &m_step);
        slurm_list_append(m_clusters.get(), m_cluster.data());
        m_condition.step_list = m_steps.get();
        m_condition.cluster_list = m_clusters.get();
        m_condition.flags =
            JOBCOND_FLAG_NO_STEP | JOBCOND_FLAG_NO_TRUNC | JOBCOND_FLAG_NO_DEFAULT_USAGE;
        m_condition.db_flags = NO_VAL;
    }
    OneJob(const OneJob&) = delete;
    OneJob& operator=(const OneJob&) = delete;

    slurmdb_job_cond_t* get() { return &m_condition; }

private:
    std::string m_cluster;
    slurm_selected_step_t m_step{};
    OwnedList m_steps;
    OwnedList m_clusters;
    slurmdb_job_cond_t m_condition{};
};

/// The newest record: job ids are reused.
const slurmdb_job_rec_t* newest(slurm::List list)
{
    const slurmdb_job_rec_t* found = nullptr;
    auto* const iterator = slurm_list_iterator_create(list);
    while (const void* item = slurm_list_next(iterator)) {
        const auto* record = static_cast<const slurmdb_job_rec_t*>(item);
        if (found == nullptr || record->submit >= found->submit) {
            found = record;
        }
    }
    slurm_list_iterator_destroy(iterator);
    return found;
}

PastJob past_job_of(const slurmdb_job_rec_t& record)
{
    const JobState state = slurm::state_of(record.state);
    const bool has_canceller =
        state == JobState::cancelled && record.requid != NO_VAL && record.requid != INFINITE;
    return {JobId{record.jobid},
            record.jobname == nullptr ? "" : record.jobname,
            record.uid,
            record.derived_es == nullptr ? "" : record.derived_es,
            state,
            slurm::exit_status_of_wait(record.exitcode),
            has_canceller ? std::optional<std::uint32_t>(record.requid) : std::nullopt,
            slurm::time_of(record.start),
            slurm::time_of(record.end)};
}

bool has_end(void* connection, JobId id)
{
    OneJob condition(id);
    const OwnedList list(slurmdb_jobs_get(connection, condition.get()));
    const slurmdb_job_rec_t* record = list ? newest(list.get()) : nullptr;
    return record != nullptr && record->end != 0;
}

/// slurmctld's report of a job's end contains its own comment, which overwrites an earlier change.
void wait_for_end(void* connection, JobId id)
{
    const auto last = std::chrono::steady_clock::now() + k_end_comes_within;
    while (!has_end(connection, id) && std::chrono::steady_clock::now() < last) {
        std::this_thread::sleep_for(k_between_queries);
    }
}

} // namespace

namespace slurm {

Result<void> needs_accounting()
{
    return has_accounting()
               ? Result<void>()
               : fail(Error::Kind::unreachable,
                      "this Slurm keeps no accounting (slurmdbd); `gpuq doctor` shows why");
}

Result<PastJob> answer(const PastJobQuery& query)
{
    const MessageCapture capture{"the job in accounting"};
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    OneJob condition(query.id);
    errno = 0;
    const OwnedList list(connection == nullptr ? nullptr
                                               : slurmdb_jobs_get(connection, condition.get()));
    if (!list) {
        return unanswered(QueryKind::past_job, errno);
    }
    const slurmdb_job_rec_t* record = newest(list.get());
    auto job = record == nullptr
                   ? Result<PastJob>(fail(Error::Kind::missing,
                                          fmt::format("accounting has no job {}", query.id.value)))
                   : past_job_of(*record);
    slurmdb_connection_close(&connection);
    return job;
}

} // namespace slurm

Result<std::unique_ptr<SlurmAccounting>>
SlurmAccounting::open(const std::optional<std::string>& path, const std::string& program)
{
    TRY(slurm::choose_configuration(path));
    return std::unique_ptr<SlurmAccounting>(new SlurmAccounting(program));
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static)
Result<void> SlurmCluster::note_in_accounting(JobId id, const std::string& comment)
{
    if (!slurm::has_accounting() || !slurm::keeps_comments()) {
        return {};
    }
    const slurm::MessageCapture capture{"a note in accounting"};
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    if (connection != nullptr) {
        wait_for_end(connection, id);
    }
    OneJob condition(id);
    std::string text = comment;
    slurmdb_job_rec_t change{};
    change.derived_ec = NO_VAL;
    change.derived_es = text.data();
    errno = 0;
    const OwnedList changed(
        connection == nullptr ? nullptr : slurmdb_job_modify(connection, condition.get(), &change));
    const int error = errno;
    const bool kept = changed && slurmdb_connection_commit(connection, true) == SLURM_SUCCESS;
    slurmdb_connection_close(&connection);
    return kept ? Result<void>() : slurm::unanswered(slurm::QueryKind::past_job, error);
}

Result<PastJob> SlurmAccounting::past_job(JobId id)
{
    return slurm::ask(m_program, slurm::PastJobQuery{id});
}

} // namespace gpuq
