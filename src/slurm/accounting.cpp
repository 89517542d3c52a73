// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/accounting.h"
#include "slurm/bounded.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/jobs.h"
#include "slurm/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

namespace gpuq {
namespace {

constexpr std::chrono::seconds k_patience{10};
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

// The child's response: `missing`, `error CODE`, or `job ID STATE STATUS CANCELLED_BY START END UID
// NAME-LENGTH NAME COMMENT`, with -1 if no user cancelled it and 0 for an unset time.

std::string as_text(const slurmdb_job_rec_t& record)
{
    const bool has_canceller = slurm::state_of(record.state) == JobState::cancelled &&
                               record.requid != NO_VAL && record.requid != INFINITE;
    const std::string name = record.jobname == nullptr ? "" : record.jobname;
    return fmt::format("job {} {} {} {} {} {} {} {} {} {}", record.jobid, record.state,
                       record.exitcode, has_canceller ? std::int64_t{record.requid} : -1,
                       record.start, record.end, record.uid, name.size(), name,
                       record.derived_es == nullptr ? "" : record.derived_es);
}

/// Runs in the child.
std::string ask_for(JobId id)
{
    const slurm::MessageCapture capture{"the job in accounting"};
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    OneJob condition(id);
    errno = 0;
    const OwnedList list(connection == nullptr ? nullptr
                                               : slurmdb_jobs_get(connection, condition.get()));
    if (!list) {
        return fmt::format("error {}", errno);
    }
    const slurmdb_job_rec_t* record = newest(list.get());
    std::string answer = record == nullptr ? "missing" : as_text(*record);
    slurmdb_connection_close(&connection);
    return answer;
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

PastJob past_job_of(const std::string& answer)
{
    std::istringstream text(answer);
    std::string word;
    PastJob job;
    std::uint32_t state = 0;
    std::uint32_t wait_status = 0;
    std::int64_t canceller = -1;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::size_t length = 0;
    text >> word >> job.id.value >> state >> wait_status >> canceller >> start >> end >> job.uid >>
        length;
    text.ignore(1);
    job.name.resize(std::min(length, answer.size()));
    text.read(job.name.data(), static_cast<std::streamsize>(job.name.size()));
    text.ignore(1);
    std::getline(text, job.comment, '\0');
    job.state = slurm::state_of(state);
    job.exit_status = slurm::exit_status_of_wait(wait_status);
    job.started_at = slurm::time_of(start);
    job.ended_at = slurm::time_of(end);
    if (canceller >= 0) {
        job.cancelled_by = static_cast<std::uint32_t>(canceller);
    }
    return job;
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

Error no_accounting_answer(const std::string& answer)
{
    const int code = answer.starts_with("error ") ? std::atoi(answer.c_str() + 6) : 0;
    return fail(Error::Kind::unreachable,
                fmt::format("Slurm's accounting does not answer: {}",
                            slurm_strerror(code == 0 ? int(ESLURM_DB_CONNECTION) : code)));
}

} // namespace slurm

Result<std::unique_ptr<SlurmAccounting>>
SlurmAccounting::open(const std::optional<std::string>& path)
{
    TRY(slurm::choose_configuration(path));
    slurm::load_configuration(); // here rather than in each child
    return std::unique_ptr<SlurmAccounting>(new SlurmAccounting);
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
    return kept ? Result<void>() : slurm::no_accounting_answer(fmt::format("error {}", error));
}

Result<PastJob> SlurmAccounting::past_job(JobId id)
{
    TRY(slurm::needs_accounting());
    // libslurm itself waits up to 90 seconds for a slurmdbd that hangs.
    const auto answer = slurm::in_a_child([id] { return ask_for(id); }, k_patience);
    if (answer && *answer == "missing") {
        return fail(Error::Kind::missing, fmt::format("accounting has no job {}", id.value));
    }
    if (!answer || !answer->starts_with("job ")) {
        return slurm::no_accounting_answer(answer.value_or(""));
    }
    return past_job_of(*answer);
}

} // namespace gpuq
