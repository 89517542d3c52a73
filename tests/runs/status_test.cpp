// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/status.h"

#include "ports/accounting.h"
#include "runs/events.h"

#include <gtest/gtest.h>

#include <functional>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

const Time k_made{1'800'000'000s};
const Time k_ten_minutes_later = k_made + 10min;

Run the_run()
{
    Run run{RunKey::make(k_made, {1, 2, 3, 4, 5, 6, 7, 8})};
    run.cluster = "lab";
    run.request.walltime = 120min;
    return run;
}

/// A run with only its record written.
Evidence recorded()
{
    Evidence evidence{the_run().key};
    evidence.run = the_run();
    return evidence;
}

Evidence submitted()
{
    Evidence evidence = recorded();
    evidence.job = LinkJob{"lab", JobId{7}, k_made + 1s, true};
    evidence.job_recorded = true;
    return evidence;
}

Evidence supervised(Time last_beat)
{
    Evidence evidence = submitted();
    evidence.journal.push_back(event(Event::Kind::supervisor_started, k_made + 2s));
    evidence.journal.back().host = "node1";
    evidence.heartbeat = Heartbeat{last_beat, JobId{7}, 99, 10, 0};
    return evidence;
}

Job job(JobState state)
{
    Job result;
    result.id = JobId{7};
    result.state = state;
    result.batch = true;
    return result;
}

PastJob past(JobState state, int exit_status = 0)
{
    PastJob result;
    result.id = JobId{7};
    result.state = state;
    result.exit_status = exit_status;
    result.ended_at = k_ten_minutes_later - 1min;
    return result;
}

struct Case {
    const char* name;
    std::function<Evidence()> evidence;
    RunState state;
    std::optional<Cause> cause; ///< for an ended run
    int status = 0;
};

Evidence with(Evidence evidence, SlurmAnswer slurm, PastAnswer past_answer = NotAsked{})
{
    evidence.slurm = std::move(slurm);
    evidence.past = std::move(past_answer);
    return evidence;
}

Evidence stop_asked(Evidence evidence)
{
    evidence.stop = StopRequest{"ada@login1", k_ten_minutes_later - 2min};
    return evidence;
}

/// The same run, created a moment ago.
Evidence just_made()
{
    Evidence evidence{RunKey::make(k_ten_minutes_later - 5s, {1, 2, 3, 4, 5, 6, 7, 8})};
    evidence.run = the_run();
    return evidence;
}

Job failed_with(int status)
{
    Job result = job(JobState::failed);
    result.exit_status = status;
    return result;
}

Evidence ended_in_journal()
{
    Evidence evidence = supervised(k_ten_minutes_later - 1s);
    evidence.journal.push_back(event(Event::Kind::ended, k_ten_minutes_later - 1s));
    evidence.journal.back().status = 3;
    evidence.journal.back().cause = Cause::finished;
    return evidence;
}

Evidence ended_in_record()
{
    Evidence evidence = submitted();
    evidence.ended = Ending{119, Cause::node_failed, "", k_ten_minutes_later - 1h};
    return evidence;
}

class Conclude : public ::testing::TestWithParam<Case> {};

TEST_P(Conclude, SaysWhatIsKnown)
{
    const RunStatus status = conclude(GetParam().evidence(), k_ten_minutes_later);
    EXPECT_EQ(word(status.state), word(GetParam().state)) << status.why_unknown;
    ASSERT_EQ(status.ending.has_value(), GetParam().cause.has_value());
    if (status.ending) {
        EXPECT_EQ(word(status.ending->cause), word(*GetParam().cause));
        EXPECT_EQ(status.ending->status, GetParam().status);
    }
}

const Case k_cases[] = {
    // The supervisor's final event takes precedence over everything else.
    {"JournalBeforeSlurm", [] { return with(ended_in_journal(), job(JobState::node_fail)); },
     RunState::ended, Cause::finished, 3},
    {"JournalBeforeRecord",
     [] {
         Evidence evidence = ended_in_journal();
         evidence.ended = Ending{119, Cause::lost, "", k_ten_minutes_later};
         return evidence;
     },
     RunState::ended, Cause::finished, 3},
    {"RecordBeforeSlurm", [] { return with(ended_in_record(), job(JobState::running)); },
     RunState::ended, Cause::node_failed, 119},
    {"RecordBeforeAFreshHeartbeat",
     [] {
         Evidence evidence = ended_in_record();
         evidence.heartbeat = Heartbeat{k_ten_minutes_later, JobId{7}, 99, 0, 0};
         return evidence;
     },
     RunState::ended, Cause::node_failed, 119},
    // Fresh heartbeat.
    {"FreshHeartbeatBeforeSlurm",
     [] { return with(supervised(k_ten_minutes_later - 14s), job(JobState::failed)); },
     RunState::running,
     {}},
    {"FreshHeartbeatWithoutSlurm",
     [] { return with(supervised(k_ten_minutes_later - 14s), NoAnswer{"down"}); },
     RunState::running,
     {}},
    // Unknown is never reported as ended.
    {"StaleHeartbeatUnasked",
     [] { return supervised(k_ten_minutes_later - 16s); },
     RunState::unknown,
     {}},
    {"StaleHeartbeatSlurmSilent",
     [] { return with(supervised(k_ten_minutes_later - 9min), NoAnswer{"down"}); },
     RunState::unknown,
     {}},
    {"QueuedSlurmSilent",
     [] { return with(submitted(), NoAnswer{"down"}); },
     RunState::unknown,
     {}},
    {"OddState", [] { return with(submitted(), job(JobState::unknown)); }, RunState::unknown, {}},
    // Before Slurm knows the job.
    {"JustMade", [] { return just_made(); }, RunState::submitting, {}},
    {"JustMadeSlurmSilent",
     [] { return with(just_made(), NoAnswer{"down"}); },
     RunState::submitting,
     {}},
    {"JustMadeNotThereYet",
     [] { return with(just_made(), NoSuchJob{}); },
     RunState::submitting,
     {}},
    {"NeverReachedSlurm", [] { return with(recorded(), NoSuchJob{}); }, RunState::ended,
     Cause::lost, 119},
    {"NeverReachedSlurmAndStopped", [] { return with(stop_asked(recorded()), NoSuchJob{}); },
     RunState::ended, Cause::stopped, 123},
    {"OldAndUnasked", [] { return recorded(); }, RunState::unknown, {}},
    // Slurm's response.
    {"Pending", [] { return with(submitted(), job(JobState::pending)); }, RunState::waiting, {}},
    {"Running", [] { return with(submitted(), job(JobState::running)); }, RunState::running, {}},
    {"RunningSilentSupervisor",
     [] { return with(supervised(k_ten_minutes_later - 1min), job(JobState::running)); },
     RunState::running,
     {}},
    {"Suspended",
     [] { return with(submitted(), job(JobState::suspended)); },
     RunState::running,
     {}},
    {"Completing",
     [] { return with(submitted(), job(JobState::completing)); },
     RunState::running,
     {}},
    {"Completed", [] { return with(supervised(k_made), job(JobState::completed)); },
     RunState::ended, Cause::finished, 0},
    {"FailedAsTheProgram", [] { return with(supervised(k_made), failed_with(3)); }, RunState::ended,
     Cause::finished, 3},
    {"FailedByAGuard", [] { return with(supervised(k_made), failed_with(119)); }, RunState::ended,
     Cause::lost, 119},
    {"FailedByASignal", [] { return with(supervised(k_made), failed_with(137)); }, RunState::ended,
     Cause::lost, 119},
    {"FailedBeforeTheSupervisor", [] { return with(submitted(), failed_with(127)); },
     RunState::ended, Cause::not_started, 127},
    {"FailedToStartItsScript", [] { return with(submitted(), failed_with(128 + 53)); },
     RunState::ended, Cause::not_started, 125},
    {"TimedOut", [] { return with(submitted(), job(JobState::timeout)); }, RunState::ended,
     Cause::time_limit, 124},
    {"PastItsDeadline", [] { return with(submitted(), job(JobState::deadline)); }, RunState::ended,
     Cause::time_limit, 124},
    {"NodeFailed", [] { return with(submitted(), job(JobState::node_fail)); }, RunState::ended,
     Cause::node_failed, 119},
    {"BootFailed", [] { return with(submitted(), job(JobState::boot_fail)); }, RunState::ended,
     Cause::node_failed, 119},
    {"Preempted", [] { return with(submitted(), job(JobState::preempted)); }, RunState::ended,
     Cause::preempted, 119},
    {"OutOfMemory", [] { return with(submitted(), job(JobState::out_of_memory)); }, RunState::ended,
     Cause::memory, 137},
    {"Cancelled", [] { return with(submitted(), job(JobState::cancelled)); }, RunState::ended,
     Cause::cancelled, 123},
    {"Stopped", [] { return with(stop_asked(submitted()), job(JobState::cancelled)); },
     RunState::ended, Cause::stopped, 123},
    // Slurm has forgotten the job, but accounting has it.
    {"ForgottenTimeout", [] { return with(submitted(), NoSuchJob{}, past(JobState::timeout)); },
     RunState::ended, Cause::time_limit, 124},
    {"ForgottenFailed",
     [] { return with(supervised(k_made), NoSuchJob{}, past(JobState::failed, 4)); },
     RunState::ended, Cause::finished, 4},
    {"ForgottenByBoth", [] { return with(submitted(), NoSuchJob{}, NoSuchJob{}); }, RunState::ended,
     Cause::lost, 119},
    {"ForgottenAccountingSilent",
     [] { return with(submitted(), NoSuchJob{}, NoAnswer{"down"}); },
     RunState::ended,
     {}},
    {"ForgottenStillRunningInAccounting",
     [] { return with(submitted(), NoSuchJob{}, past(JobState::running)); }, RunState::ended,
     Cause::lost, 119},
    {"ForgottenAccountingUnasked",
     [] { return with(submitted(), NoSuchJob{}); },
     RunState::ended,
     {}},
};

INSTANTIATE_TEST_SUITE_P(Table, Conclude, ::testing::ValuesIn(k_cases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Status, GivesUpOnAccountingAfterAnHour)
{
    const Evidence evidence = with(submitted(), NoSuchJob{}, NoAnswer{"down"});
    EXPECT_FALSE(conclude(evidence, k_made + 59min).ending);
    EXPECT_EQ(conclude(evidence, k_made + 62min).ending->cause, Cause::lost);
}

TEST(Status, TellsWhyAndUntilWhenARunWaits)
{
    Job waiting = job(JobState::pending);
    waiting.reason = "Priority";
    waiting.started_at = k_ten_minutes_later + 1h;
    const RunStatus status = conclude(with(submitted(), waiting), k_ten_minutes_later);
    EXPECT_EQ(status.reason, "Priority");
    EXPECT_EQ(status.expected_start, k_ten_minutes_later + 1h);
    EXPECT_FALSE(status.started_at);
}

TEST(Status, TellsSinceWhenWhereAndUntilWhenARunRuns)
{
    const RunStatus by_itself = conclude(supervised(k_ten_minutes_later), k_ten_minutes_later);
    EXPECT_EQ(by_itself.started_at, k_made + 2s);
    EXPECT_EQ(by_itself.ends_at, k_made + 2s + 120min);
    EXPECT_EQ(by_itself.host, "node1");
    Job running = job(JobState::running);
    running.started_at = k_made + 3s;
    running.ends_at = k_made + 3h;
    running.batch_host = "node2";
    const RunStatus by_slurm = conclude(with(submitted(), running), k_ten_minutes_later);
    EXPECT_EQ(by_slurm.started_at, k_made + 3s);
    EXPECT_EQ(by_slurm.ends_at, k_made + 3h);
    EXPECT_EQ(by_slurm.host, "node2");
}

TEST(Status, TellsWhichOfAPolicysQueuesARunIsIn)
{
    const auto queue = [](Evidence evidence) {
        evidence.run->request.queue = "calibration,long";
        return conclude(evidence, k_ten_minutes_later).queue;
    };
    Job running = job(JobState::running);
    running.partition = "long-visu";
    Job waiting = job(JobState::pending);
    waiting.partition = "calibration,long,long-visu";
    Evidence by_itself = supervised(k_ten_minutes_later);
    by_itself.journal.front().detail = "calibration-lab";
    EXPECT_EQ(queue(with(submitted(), running)), "long");
    EXPECT_EQ(queue(with(submitted(), waiting)), "calibration,long");
    EXPECT_EQ(queue(by_itself), "calibration");
    running.partition = "maintenance"; // moved by an operator
    EXPECT_EQ(queue(with(submitted(), running)), "maintenance");
}

TEST(Status, TellsASuspendedRun)
{
    EXPECT_TRUE(
        conclude(with(submitted(), job(JobState::suspended)), k_ten_minutes_later).suspended);
    EXPECT_FALSE(
        conclude(with(submitted(), job(JobState::running)), k_ten_minutes_later).suspended);
}

TEST(Status, SaysWhoStoppedOrCancelledARun)
{
    EXPECT_EQ(conclude(with(stop_asked(submitted()), job(JobState::cancelled)), k_ten_minutes_later)
                  .ending->detail,
              "by ada@login1");
    PastJob cancelled = past(JobState::cancelled);
    cancelled.cancelled_by = 1001;
    EXPECT_EQ(conclude(with(submitted(), job(JobState::cancelled), cancelled), k_ten_minutes_later)
                  .ending->detail,
              "by user id 1001");
    cancelled.cancelled_by = 0;
    EXPECT_EQ(
        conclude(with(submitted(), NoSuchJob{}, cancelled), k_ten_minutes_later).ending->detail,
        "by root");
}

TEST(Status, TellsARunThatCouldNeverStartFromACancelledOne)
{
    Evidence evidence = submitted();
    evidence.run->request.after = JobId{6};
    Job cancelled = job(JobState::cancelled);
    cancelled.reason = "DependencyNeverSatisfied";
    const Ending ending = *conclude(with(evidence, cancelled), k_ten_minutes_later).ending;
    EXPECT_EQ(ending.cause, Cause::not_started);
    EXPECT_EQ(ending.status, 125);
    EXPECT_EQ(ending.detail, "run 6, which it was to follow, did not succeed");
    const auto cause = [&](SlurmAnswer slurm, PastAnswer answer) {
        return conclude(with(evidence, std::move(slurm), std::move(answer)), k_ten_minutes_later)
            .ending->cause;
    };
    EXPECT_EQ(cause(cancelled, past(JobState::cancelled)), Cause::not_started);
    EXPECT_EQ(cause(NoSuchJob{}, past(JobState::cancelled)), Cause::not_started);
    PastJob by_other_user = past(JobState::cancelled);
    by_other_user.cancelled_by = 1001;
    EXPECT_EQ(cause(NoSuchJob{}, by_other_user), Cause::cancelled);
    cancelled.reason = "Dependency";
    EXPECT_EQ(cause(cancelled, NotAsked{}), Cause::cancelled);
}

TEST(Status, QuotesWhatWasSaidBeforeThereWasASupervisor)
{
    Evidence evidence = with(submitted(), failed_with(127));
    evidence.slurm_log =
        "first\nslurm_script: line 2: /x\033[31m/gpuq-supervisor: No such file\n\n";
    const Ending ending = *conclude(evidence, k_ten_minutes_later).ending;
    EXPECT_EQ(ending.cause, Cause::not_started);
    EXPECT_EQ(ending.status, 125);
    EXPECT_EQ(ending.detail.find('\033'), std::string::npos);
    EXPECT_TRUE(ending.detail.ends_with("/gpuq-supervisor: No such file")) << ending.detail;
    EXPECT_EQ(ending.detail.find("first"), std::string::npos);
    evidence.slurm_log = " \n\n";
    EXPECT_EQ(conclude(evidence, k_ten_minutes_later).ending->status, 127) << "nothing was said";
    Evidence supervised_one = with(supervised(k_made), failed_with(3));
    supervised_one.slurm_log = "a warning";
    EXPECT_EQ(conclude(supervised_one, k_ten_minutes_later).ending->status, 3);
}

TEST(Status, DoesNotTakeALateStopRequestForTheCause)
{
    Job cancelled = job(JobState::cancelled);
    cancelled.ends_at = k_ten_minutes_later - 5min;
    EXPECT_EQ(conclude(with(stop_asked(submitted()), cancelled), k_ten_minutes_later).ending->cause,
              Cause::cancelled);
}

TEST(Status, TellsNoStartOfAJobThatNeverLeftTheQueue)
{
    Job cancelled = job(JobState::cancelled);
    cancelled.started_at = cancelled.ends_at = k_ten_minutes_later - 1min; // as reported by Slurm
    EXPECT_FALSE(conclude(with(submitted(), cancelled), k_ten_minutes_later).started_at);
    cancelled.nodes = "node1";
    EXPECT_TRUE(conclude(with(submitted(), cancelled), k_ten_minutes_later).started_at);
}

TEST(Status, AsksOnlyWhoCanSayMore)
{
    EXPECT_FALSE(needs_slurm(ended_in_journal(), k_ten_minutes_later));
    EXPECT_FALSE(needs_slurm(ended_in_record(), k_ten_minutes_later));
    EXPECT_FALSE(needs_slurm(supervised(k_ten_minutes_later - 15s), k_ten_minutes_later));
    EXPECT_TRUE(needs_slurm(supervised(k_ten_minutes_later - 16s), k_ten_minutes_later));
    EXPECT_TRUE(needs_slurm(submitted(), k_ten_minutes_later));
    EXPECT_TRUE(needs_accounting(with(submitted(), NoSuchJob{})));
    EXPECT_TRUE(needs_accounting(with(submitted(), job(JobState::cancelled))));
    EXPECT_FALSE(needs_accounting(with(stop_asked(submitted()), job(JobState::cancelled))));
    EXPECT_FALSE(needs_accounting(with(submitted(), job(JobState::timeout))));
    EXPECT_FALSE(needs_accounting(with(recorded(), NoSuchJob{})));
    EXPECT_FALSE(needs_accounting(submitted()));
}

TEST(Status, OfUnreadableRecordsIsUnknownUnlessThereIsProof)
{
    for (const SlurmAnswer& answer :
         {SlurmAnswer(NoSuchJob{}), SlurmAnswer(job(JobState::completed)),
          SlurmAnswer(NotAsked{})}) {
        Evidence torn = with(submitted(), answer);
        torn.trouble = "runs/x: Input/output error";
        const RunStatus status = conclude(torn, k_ten_minutes_later);
        EXPECT_EQ(status.state, RunState::unknown);
        EXPECT_EQ(status.why_unknown, "runs/x: Input/output error");
    }
    Evidence alive = supervised(k_ten_minutes_later);
    alive.trouble = "runs/x: Input/output error";
    EXPECT_EQ(conclude(alive, k_ten_minutes_later).state, RunState::running);
    Evidence over = ended_in_journal();
    over.trouble = "runs/x: Input/output error";
    EXPECT_EQ(conclude(over, k_ten_minutes_later).state, RunState::ended);
}

TEST(Status, CallsOnlyAnAllocationWithoutASupervisorAbandoned)
{
    Job allocation = job(JobState::running);
    allocation.batch = false;
    allocation.started_at = k_ten_minutes_later - 61s;
    Evidence never = with(recorded(), allocation);
    EXPECT_TRUE(needs_step(never, k_ten_minutes_later));
    EXPECT_FALSE(needs_step(never, k_ten_minutes_later - 2s));
    EXPECT_FALSE(is_abandoned(never, k_ten_minutes_later)) << "its step may run";
    never.step_is_over = true;
    EXPECT_TRUE(is_abandoned(never, k_ten_minutes_later));
    Evidence silent = with(supervised(k_made), allocation);
    EXPECT_TRUE(needs_step(silent, k_ten_minutes_later));
    EXPECT_FALSE(is_abandoned(silent, k_ten_minutes_later));
    silent.step_is_over = true;
    EXPECT_TRUE(is_abandoned(silent, k_ten_minutes_later));
    EXPECT_FALSE(
        needs_step(with(supervised(k_ten_minutes_later), allocation), k_ten_minutes_later));
    EXPECT_FALSE(is_abandoned(recorded(), k_ten_minutes_later));
    Job batch = allocation;
    batch.batch = true;
    EXPECT_FALSE(is_abandoned(with(recorded(), batch), k_ten_minutes_later));
    allocation.state = JobState::pending;
    EXPECT_FALSE(is_abandoned(with(recorded(), allocation), k_ten_minutes_later));
}

} // namespace
} // namespace gpuq
