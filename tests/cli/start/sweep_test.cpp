// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "io/descriptor.h"
#include "io/subprocess.h"
#include "runs/evidence.h"
#include "runs/run_on_disk.h"
#include "sweeps/changes.h"
#include "sweeps/past.h"
#include "sweeps/taker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using sweeps::TryEnd;
using sweeps::TryEvent;
using sweeps::TryTaker;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Arguments = std::vector<std::string>;

/// Creates a file when its size is read for the `at`th time.
class CreatingStore : public fakes::MemoryStore {
public:
    std::string path;
    int at = 0;

    Result<std::uint64_t> size(const std::string& name) override
    {
        if (name == path && --at == 0) {
            files[path] = "";
        }
        return MemoryStore::size(name);
    }
};

/// Makes another key each time.
class SweepServices : public FakeServices {
public:
    std::array<unsigned char, 8> random() override { return {++m_number}; }

private:
    unsigned char m_number = 0;
};

class SweepTest : public testing::Test {
protected:
    SweepTest()
    {
        std::ofstream(m_dir / "train.py") << "pass\n";
        std::filesystem::current_path(m_dir);
        m_services.slurm.queues = {{.name = "gpu", .max_time = 48h, .is_default = true}};
        m_services.slurm.machines = {
            {.name = "n1", .gpus = {{"k80", 3, 0}}, .partitions = {"gpu"}}};
    }

    ~SweepTest() override
    {
        std::filesystem::current_path(m_before);
        std::filesystem::remove_all(m_dir);
    }

    Use use(const Verb& verb, const Arguments& arguments, Globals globals = {})
    {
        return cli::use(verb, m_services, arguments, std::move(globals));
    }

    /// A detached sweep of four tries.
    void begin(Arguments more = {})
    {
        Arguments arguments{"--detach", "-J", "cal", "--over", "lr=1,2", "--over", "n=3,4"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        arguments.insert(arguments.end(), {"train.py", "--lr", "{lr}", "{n}"});
        const Use done = use(k_sweep_verb, arguments);
        ASSERT_EQ(done.status, 0) << done.err;
    }

    RunKey key() { return sweeps::find_sweep(m_services.memory, "cal")->run.key; }

    std::vector<gpuq::Run> workers()
    {
        std::vector<gpuq::Run> runs;
        const auto keys = all_runs(m_services.memory);
        for (const RunKey& one : keys ? *keys : std::vector<RunKey>()) {
            runs.push_back(*read_run(m_services.memory, one));
        }
        return runs;
    }

    /// The next try ends as if a worker had run it.
    void end_next(TryEnd end, int status, std::optional<double> best,
                  std::optional<sweeps::EarlyStop> evidence = {})
    {
        const auto runs = workers();
        TryTaker taker(m_services.memory, key(), {runs.back().key, LinkNumber{1}},
                       [](const auto&) { return false; });
        const auto taken = taker.next(m_services.time.now());
        ASSERT_TRUE(taken && *taken);
        TryEvent event{TryEvent::Kind::ended, (*taken)->number, (*taken)->attempt,
                       m_services.time.now() + 5s};
        event.end = end;
        event.status = status;
        event.values.best = best;
        event.evidence = evidence;
        ASSERT_TRUE(taker.record(event));
    }

    static std::string new_directory()
    {
        std::string name = testing::TempDir() + "gpuq-sweep-XXXXXX";
        return ::mkdtemp(name.data());
    }

    std::filesystem::path m_before = std::filesystem::current_path();
    std::filesystem::path m_dir = new_directory();
    SweepServices m_services;
};

TEST_F(SweepTest, StartsAWorkerForEachGpuOfTheCluster)
{
    begin({"-t", "2h"});
    const auto runs = workers();
    ASSERT_THAT(runs, SizeIs(3));
    for (const gpuq::Run& run : runs) {
        EXPECT_THAT(run.request.program,
                    ElementsAre("/gpuq-supervisor", "work", "/state", key().text()));
        ASSERT_TRUE(run.request.sweep);
        EXPECT_EQ(run.request.sweep->sweep, key());
        EXPECT_EQ(run.request.walltime, 2h);
        ASSERT_TRUE(run.request.chain);
        EXPECT_TRUE(run.request.chain->aware && run.request.chain->from_scratch);
    }
    EXPECT_EQ(runs.back().request.name, "cal-w1");
    const auto sweep = sweeps::find_sweep(m_services.memory, "cal");
    EXPECT_THAT(sweep->run.request.program,
                ElementsAre(HasSubstr("python3"), "train.py", "--lr", "{lr}", "{n}"));
    EXPECT_THAT(sweep->run.environment, IsEmpty());
}

TEST_F(SweepTest, StartsNoMoreWorkersThanGpusAreFreeButOne)
{
    int& in_use = m_services.slurm.machines[0].gpus[0].in_use.emplace(1);
    begin();
    EXPECT_THAT(workers(), SizeIs(2));
    in_use = 3;
    ASSERT_EQ(use(k_sweep_verb, {"--detach", "-J", "other", "--over", "n=1..9", "train.py", "{n}"})
                  .status,
              0);
    EXPECT_THAT(workers(), SizeIs(3));
}

TEST_F(SweepTest, AChangedSweepGetsWorkersForTheGpusThatAreFree)
{
    begin({"--over", "k=1..9"});
    ASSERT_THAT(workers(), SizeIs(3));
    for (Job& job : m_services.slurm.jobs) {
        job.state = JobState::running;
    }
    int& in_use = m_services.slurm.machines[0].gpus[0].in_use.emplace(3);
    const Arguments add{"add", "--detach", "cal", "--over", "lr=5", "--over", "n=5", "--over"};
    const auto with = [&](const std::string& over) {
        Arguments arguments = add;
        arguments.push_back(over);
        return use(k_sweep_verb, arguments);
    };
    ASSERT_EQ(with("k=1").status, 0);
    EXPECT_THAT(workers(), SizeIs(3));
    in_use = 2;
    ASSERT_EQ(with("k=2").status, 0);
    EXPECT_THAT(workers(), SizeIs(4));
}

TEST_F(SweepTest, StartsAsManyWorkersAsRequested)
{
    begin({"--workers", "2"});
    EXPECT_THAT(workers(), SizeIs(2));
}

TEST_F(SweepTest, RefusesWhatNoWorkerCanStart)
{
    m_services.variables["PATH"] = "/usr/bin:/bin";
    const Arguments sweep{"--detach", "-J", "cal", "--over", "model=a,b"};
    const auto with = [&](const Arguments& more) {
        Arguments arguments = sweep;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return use(k_sweep_verb, arguments);
    };
    EXPECT_THAT(with({"--propose", "./nosuch x", "true", "{model}"}).err,
                HasSubstr("--propose: ./nosuch: not found"));
    EXPECT_THAT(with({"python3", "nosuch.py", "{model}"}).err, HasSubstr("nosuch.py: not found"));
    EXPECT_THAT(workers(), IsEmpty());
    EXPECT_EQ(with({"python3", "train_{model}.py"}).status, 0) << "each try has its own script";
}

TEST_F(SweepTest, LeavesNothingIfSlurmRefusesTheFirstWorker)
{
    m_services.slurm.refusal = "no more jobs";
    const Use done =
        use(k_sweep_verb, {"--detach", "-J", "cal", "--over", "lr=1,2", "train.py", "{lr}"});
    EXPECT_EQ(done.status, 121);
    EXPECT_THAT(done.err, HasSubstr("no more jobs"));
    EXPECT_THAT(*sweeps::all_sweeps(m_services.memory), IsEmpty());
    EXPECT_THAT(workers(), IsEmpty());
}

TEST_F(SweepTest, RefusesContradictions)
{
    const auto refused = [&](const Arguments& arguments) {
        const Use done = use(k_sweep_verb, arguments);
        EXPECT_EQ(done.status, 2) << done.err;
        return done.err;
    };
    EXPECT_THAT(refused({"train.py"}), HasSubstr("--over NAME=VALUES"));
    EXPECT_THAT(refused({"--over", "a=1", "--over", "a=2", "train.py"}), HasSubstr("there twice"));
    EXPECT_THAT(refused({"--over", "a=1", "--seed", "1", "train.py"}), HasSubstr("--random N"));
    EXPECT_THAT(refused({"--over", "a=1", "--from", "f", "train.py"}), HasSubstr("leave out"));
    EXPECT_THAT(refused({"--over", "a=1", "--workers", "0", "train.py"}), HasSubstr("--workers"));
    EXPECT_THAT(refused({"--over", "a=1", "--per-gpu", "x", "train.py"}), HasSubstr("--per-gpu"));
    EXPECT_THAT(refused({"--over", "a=1", "--metric", ":min", "train.py"}), HasSubstr("--metric"));
    EXPECT_THAT(refused({"--over", "a=1", "--stop-early", "asha", "train.py"}),
                HasSubstr("--metric NAME:min"));
    EXPECT_THAT(refused({"--over", "a=1", "--metric", "l", "--stop-early", "asha:x=1", "train.py"}),
                HasSubstr("--stop-early: character 6: 'x' is not an option of asha"));
    EXPECT_THAT(refused({"--over", "a=1", "--tries", "3", "train.py"}), HasSubstr("--propose"));
    EXPECT_THAT(refused({"--over", "a=1", "--propose", " ", "train.py"}), HasSubstr("no command"));
    EXPECT_THAT(refused({"--over", "a=1", "--propose", "'x", "train.py"}),
                HasSubstr("--propose: a ' is never closed"));
    EXPECT_THAT(refused({"--over", "a=\xff", "train.py"}), HasSubstr("not UTF-8"));
    EXPECT_THAT(refused({"--over", "a=1", "{a}.py"}), HasSubstr("can't depend on a parameter"));
    EXPECT_THAT(refused({"--over", "a=1", "-N", "2", "train.py"}), HasSubstr("-N"));
}

TEST_F(SweepTest, RefusesOptionsThatASubcommandDoesNotHave)
{
    begin();
    const auto refused = [&](const Arguments& arguments) {
        const Use done = use(k_sweep_verb, arguments);
        EXPECT_EQ(done.status, 2) << done.err;
        return done.err;
    };
    EXPECT_THAT(refused({"add", "cal", "--over", "lr=7", "--over", "n=1", "--metric", "acc:max"}),
                HasSubstr("add: --metric belongs to the start of a sweep"));
    EXPECT_THAT(refused({"retry", "cal", "-t", "2h"}), HasSubstr("retry: --time belongs"));
    EXPECT_THAT(refused({"export", "cal", "--workers", "2"}), HasSubstr("export: --workers"));
    EXPECT_THAT(refused({"--detach", "retry", "cal"}),
                HasSubstr("retry: --detach belongs after it: gpuq sweep retry SWEEP --detach"));
    EXPECT_THAT(refused({"export", "cal", "other"}), HasSubstr("unexpected argument 'other'"));
}

TEST_F(SweepTest, ANameDenotesAnUnfinishedRunRatherThanAnEndedSweep)
{
    begin({"--workers", "1"});
    const auto denotes_the_sweep = [&] {
        return use(k_show_verb, {"cal"}).out.starts_with("sweep cal");
    };
    const auto run = [&](std::chrono::seconds age, unsigned char number) {
        return fakes::RunOnDisk(m_services.memory,
                                fakes::some_run(m_services.time.now() - age, "cal", number))
            .submitted(JobId{number});
    };
    auto older = run(1h, 50);
    EXPECT_TRUE(denotes_the_sweep()) << "both are active: the newer one";
    for (int i = 0; i < 4; ++i) {
        end_next(TryEnd::finished, 0, 1.0);
    }
    EXPECT_FALSE(denotes_the_sweep());
    older.ended({0, Cause::finished, "", m_services.time.now()});
    EXPECT_TRUE(denotes_the_sweep()) << "both have ended: the newer one";
    run(-1s, 51).ended({0, Cause::finished, "", m_services.time.now()});
    EXPECT_FALSE(denotes_the_sweep());
    EXPECT_EQ(use(k_show_verb, {key().text()}).out.substr(0, 9), "sweep cal");
    EXPECT_EQ(use(k_sweep_verb, {"export", "cal"}).status, 0);
}

TEST_F(SweepTest, ReportsOnlyTheEndsAfterAChange)
{
    begin();
    for (int i = 0; i < 4; ++i) {
        end_next(TryEnd::finished, i == 0 ? 1 : 0, 1.0);
    }
    const Use waited = use(k_wait_verb, {"cal"});
    EXPECT_EQ(waited.status, 1);
    EXPECT_THAT(waited.err, AllOf(HasSubstr("3 of 4 tries done"), Not(HasSubstr("try 2 (lr=1"))));
}

TEST_F(SweepTest, AWorkerThatHasFoundNoTryLeftIsReplacedForAnAddedOne)
{
    begin({"--workers", "1"});
    const Time now = m_services.time.now();
    fakes::RunOnDisk(m_services.memory, workers().front())
        .submitted(JobId{1})
        .started(JobId{1}, now);
    const Arguments add{"add",    "cal",  "--detach", "--workers", "1",
                        "--over", "lr=7", "--over",   "n=8"};
    for (int i = 0; i < 3; ++i) {
        end_next(TryEnd::finished, 0, 1.0);
    }
    EXPECT_EQ(use(k_sweep_verb, add).status, 0);
    EXPECT_THAT(workers(), SizeIs(1)) << "it takes that one too";
    for (int i = 0; i < 2; ++i) {
        end_next(TryEnd::finished, 0, 1.0);
    }
    EXPECT_EQ(use(k_sweep_verb, add).status, 0);
    EXPECT_THAT(workers(), SizeIs(2));
}

TEST_F(SweepTest, WorkersOfAStoppedSweepAreReplacedWhenItContinues)
{
    begin({"--workers", "1"});
    const Time now = m_services.time.now();
    fakes::RunOnDisk(m_services.memory, workers().front())
        .submitted(JobId{1})
        .started(JobId{1}, now);
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    const std::string request = layout::inbox(workers().front().key) + "/" + layout::k_stop_request;
    EXPECT_FALSE(m_services.memory.size(request)) << "it notices that the sweep is stopped";
    EXPECT_EQ(use(k_sweep_verb, {"retry", "cal", "--detach", "--workers", "1"}).status, 0);
    EXPECT_THAT(workers(), SizeIs(2));
    EXPECT_TRUE(m_services.memory.size(request)) << "it may not have noticed";
}

TEST_F(SweepTest, GrowsUnlessANumberOfWorkersIsGiven)
{
    const auto grows = [&] {
        return m_services.memory.size(layout::sweep_grows(key())).has_value();
    };
    begin();
    EXPECT_TRUE(grows());
    const Arguments add{"add", "cal", "--detach", "--over", "lr=7", "--over", "n=8"};
    Arguments add_with = add;
    add_with.insert(add_with.end(), {"--workers", "4"});
    ASSERT_EQ(use(k_sweep_verb, add_with).status, 0);
    EXPECT_FALSE(grows());
    ASSERT_EQ(use(k_sweep_verb, add).status, 0);
    EXPECT_TRUE(grows());
    ASSERT_EQ(use(k_stop_verb, {"cal-w1"}).status, 0);
    EXPECT_FALSE(grows()) << "the worker would be replaced";
}

TEST_F(SweepTest, CountsTheTimeOfALostAttempt)
{
    begin({"--workers", "1"});
    const Time now = m_services.time.now();
    fakes::RunOnDisk worker(m_services.memory, workers().front());
    worker.submitted(JobId{1}).started(JobId{1}, now);
    TryTaker taker(m_services.memory, key(), {worker.key(), LinkNumber{1}},
                   [](const auto&) { return false; });
    ASSERT_TRUE(*taker.next(now));
    worker.beat(JobId{1}, now + 355s).ended({119, Cause::lost, "", now + 360s});
    m_services.time.advance(2h);
    const auto shown = [&] {
        Globals json;
        json.json = true;
        return use(k_show_verb, {"cal"}, json).out;
    };
    EXPECT_THAT(shown(), AllOf(HasSubstr("\"gpu_hours\": 0.1,"), HasSubstr("\"waiting\": 4,")));
}

TEST_F(SweepTest, AWorkerThatMayWaitForProposalsIsNotReplaced)
{
    ASSERT_EQ(use(k_sweep_verb, {"--detach", "-J", "cal", "--workers", "1", "--over", "n=1..9",
                                 "--propose", "search", "train.py", "{n}"})
                  .status,
              0);
    fakes::RunOnDisk(m_services.memory, workers().front())
        .submitted(JobId{1})
        .started(JobId{1}, m_services.time.now());
    const Arguments retry{"retry", "cal", "--detach", "--workers", "1"};
    EXPECT_EQ(use(k_sweep_verb, retry).status, 0);
    EXPECT_THAT(workers(), SizeIs(1));
    ASSERT_TRUE(m_services.memory.write(layout::sweep_closed(key()), "search: exit status 1"));
    EXPECT_EQ(use(k_sweep_verb, retry).status, 0);
    EXPECT_THAT(workers(), SizeIs(2));
}

TEST_F(SweepTest, NotesAMetricThatNoTryHasPrinted)
{
    begin({"--metric", "lss:min"});
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, Not(HasSubstr("no try has printed")));
    end_next(TryEnd::finished, 0, std::nullopt);
    EXPECT_THAT(use(k_show_verb, {"cal"}).out,
                HasSubstr("\nno try has printed the metric lss: see gpuq logs cal/1\n"));
    end_next(TryEnd::finished, 0, 1.0);
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, Not(HasSubstr("no try has printed")));
}

TEST_F(SweepTest, IsNotActiveWhileItIsStopped)
{
    begin({"--workers", "1"});
    const auto is_active = [&] {
        return m_services.memory.size(layout::active_sweep(key())).has_value();
    };
    EXPECT_TRUE(is_active());
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, HasSubstr("sweep cal (stopped)"));
    EXPECT_FALSE(is_active()) << "a budget gets its hours back";
    ASSERT_EQ(use(k_sweep_verb, {"retry", "cal", "--detach"}).status, 0);
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, HasSubstr("sweep cal (waiting)"));
    EXPECT_TRUE(is_active());
}

TEST_F(SweepTest, AreListedWithOneQueryForTheWorkersOfAll)
{
    for (const char* name : {"cal", "other", "third"}) {
        ASSERT_EQ(use(k_sweep_verb, {"--detach", "-J", name, "--workers", "2", "--over", "n=1..9",
                                     "train.py", "{n}"})
                      .status,
                  0);
        m_services.time.advance(1s);
    }
    m_services.slurm.requests.clear();
    const std::string listed = use(k_ls_verb, {}).out;
    EXPECT_THAT(listed, AllOf(HasSubstr("cal"), HasSubstr("other"), HasSubstr("third")));
    EXPECT_EQ(
        std::count(m_services.slurm.requests.begin(), m_services.slurm.requests.end(), "own_jobs"),
        2)
        << "with that for the runs";
}

TEST_F(SweepTest, IsListedWithoutReadingItsTriesOnceItIsOver)
{
    begin({"--workers", "1"});
    for (int i = 0; i < 3; ++i) {
        end_next(TryEnd::finished, i == 1 ? 1 : 0, 2.0 - i);
    }
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    const auto listed = [&] {
        Globals json;
        json.json = true;
        const auto text = use(k_ls_verb, {}).out;
        return text.substr(text.find('\n') + 1) + use(k_ls_verb, {}, json).out;
    };
    const std::string read = listed();
    EXPECT_THAT(read, AllOf(HasSubstr("stopped"), HasSubstr("loss 0 (try 3)"),
                            HasSubstr("\"succeeded\": 2,"), HasSubstr("\"waiting\": 1,")));
    m_services.memory.unreadable.insert(layout::sweep_tries(key(), 1));
    EXPECT_EQ(listed(), read);
    ASSERT_TRUE(m_services.memory.write(layout::active_sweep(key()), ""));
    EXPECT_THAT(listed(), Not(HasSubstr("cal"))) << "it can't be read";
    m_services.memory.unreadable.clear();
    EXPECT_EQ(listed(), read);
    ASSERT_EQ(use(k_sweep_verb, {"retry", "cal", "--detach"}).status, 0);
    end_next(TryEnd::finished, 0, 0.5);
    EXPECT_THAT(listed(), HasSubstr("\"waiting\": 1,"));
    end_next(TryEnd::finished, 0, 0.5);
    EXPECT_THAT(listed(), AllOf(HasSubstr("ended"), HasSubstr("\"waiting\": 0,")));
}

TEST_F(SweepTest, IsListedWithoutReadingTheTriesAgainThatHadEnded)
{
    ASSERT_EQ(use(k_sweep_verb, {"--detach", "-J", "cal", "--workers", "1", "--over", "n=1..80",
                                 "train.py", "{n}"})
                  .status,
              0);
    for (int i = 0; i < 70; ++i) {
        end_next(TryEnd::finished, i % 3, 70.0 - i);
    }
    const auto listed = [&] {
        Globals json;
        json.json = true;
        return use(k_ls_verb, {}, json).out;
    };
    std::string& journal = m_services.memory.files[layout::sweep_worker(key(), workers()[0].key)];
    const auto listed_without = [&](std::size_t size) {
        const std::string whole = journal;
        journal.replace(0, size - 1, size - 1, '?');
        auto text = listed();
        journal = whole;
        return text;
    };
    const std::string first = listed();
    EXPECT_THAT(first, AllOf(HasSubstr("\"succeeded\": 24,"), HasSubstr("\"failed\": 46,"),
                             HasSubstr("\"waiting\": 10,"), HasSubstr("\"best_try\": 70")));
    const std::size_t read = journal.size();
    EXPECT_EQ(listed_without(read), first);
    end_next(TryEnd::finished, 0, 99);
    EXPECT_THAT(listed_without(read),
                AllOf(HasSubstr("\"succeeded\": 25,"), HasSubstr("\"best_try\": 70")));
    ASSERT_EQ(use(k_sweep_verb, {"retry", "cal", "70", "--detach"}).status, 0);
    EXPECT_THAT(listed(), AllOf(HasSubstr("\"succeeded\": 24,"), HasSubstr("\"waiting\": 10,")));
    ASSERT_TRUE(m_services.memory.write(sweeps::past_json(key()), "{"));
    EXPECT_THAT(listed(), HasSubstr("\"succeeded\": 24,")) << "it is torn";
    EXPECT_THAT(m_services.memory.files[sweeps::past_json(key())], HasSubstr("+--"));
}

TEST_F(SweepTest, IsShownAsAPage)
{
    begin();
    for (const double loss : {3.0, 1.0, 2.0}) {
        end_next(TryEnd::finished, 0, loss);
    }
    const Use page = use(k_show_verb, {"--html", "-", "cal"});
    ASSERT_EQ(page.status, 0) << page.err;
    EXPECT_THAT(page.out, AllOf(HasSubstr("<h1>Sweep cal</h1>"), HasSubstr("3 of 4 tries done")));
    EXPECT_THAT(page.out, AllOf(HasSubstr("The best loss of 3 tries is 1."), HasSubstr("<svg")));
    EXPECT_EQ(use(k_show_verb, {"--html", "-", "cal/1"}).status, 2);
    ASSERT_EQ(use(k_show_verb, {"--html", m_dir / "page.html", "cal"}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(m_dir / "page.html"));
}

TEST_F(SweepTest, DiffComparesTheSettingsOfTwoTries)
{
    begin({"--snapshot"});
    const Use tries = use(k_diff_verb, {"cal/1", "cal/4"});
    ASSERT_EQ(tries.status, 0) << tries.err;
    EXPECT_THAT(tries.out, AllOf(HasSubstr("cal/1"), HasSubstr("cal/4")));
    EXPECT_THAT(tries.out, testing::ContainsRegex("--lr +1 3 +2 4\n"));
    EXPECT_EQ(use(k_diff_verb, {"cal/1", "cal/1"}).out, "");
}

TEST_F(SweepTest, PrintsTheTriesWithoutStartingThem)
{
    const Use done =
        use(k_sweep_verb, {"--dry-run", "--over", "lr=1,2", "train.py", "{lr}", "a b"});
    EXPECT_EQ(done.out, "   1  train.py 1 'a b'\n   2  train.py 2 'a b'\n");
    EXPECT_THAT(workers(), IsEmpty());
}

TEST_F(SweepTest, ComparesTheTriesByAnotherMetric)
{
    begin();
    end_next(TryEnd::finished, 0, 0.5);
    end_next(TryEnd::finished, 0, 0.25);
    end_next(TryEnd::finished, 0, 0.75);
    m_services.memory.files[layout::try_log(key(), 1)] = "epoch 1 acc 0.9\nepoch 2 acc 0.7\n";
    m_services.memory.files[layout::try_log(key(), 2)] = "epoch 1 acc 0.95\nepoch 2 acc 0.8\n";
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, HasSubstr("best loss 0.25 (try 2: lr=1 n=4)"));
    const Use done = use(k_show_verb, {"cal", "--metric", "acc:min"});
    EXPECT_THAT(done.out, HasSubstr("best acc 0.7 (try 1: lr=1 n=3)"));
    EXPECT_THAT(done.out, testing::ContainsRegex("1 +done +1 +3 +0.7 +0.7 +2 +5 s +0\n"));
    EXPECT_THAT(done.out, testing::ContainsRegex("3 +done +2 +3 +- +- +- +5 s +0\n"));
    EXPECT_THAT(use(k_show_verb, {"cal", "--metric", "acc:max"}).out,
                HasSubstr("best acc 0.95 (try 2"));
    EXPECT_THAT(use(k_show_verb, {"cal", "--metric", "bleu"}).out,
                HasSubstr("no try has printed the metric bleu"));
    EXPECT_EQ(use(k_show_verb, {"cal", "--metric", "acc:mean"}).status, 2);
    EXPECT_EQ(use(k_show_verb, {"cal/1", "--metric", "acc"}).err,
              "--metric: only of a whole sweep");
    EXPECT_EQ(use(k_show_verb, {"--compare", "cal", "--metric", "acc"}).status, 2);
}

TEST_F(SweepTest, NotesParametersThatNoArgumentContains)
{
    const Use done = use(k_sweep_verb, {"--detach", "-J", "cal", "--over", "lr=1", "train.py"});
    EXPECT_THAT(done.err, HasSubstr("no {lr} in the program's arguments: it gets it only as "
                                    "variable GPUQ_PARAM_lr"));
}

TEST_F(SweepTest, RefusesPlaceholdersThatAreNoParameters)
{
    const auto with = [&](const std::string& word) {
        return use(k_sweep_verb,
                   {"--detach", "--over", "lr=1", "--over", "n=2", "train.py", "{lr}{n}", word});
    };
    const Use done = with("--batch={batch}");
    EXPECT_EQ(done.status, 2);
    EXPECT_EQ(done.err, "{batch} in the program's arguments: no parameter 'batch', but lr, n; "
                        "{{batch}} gives {batch}");
    EXPECT_THAT(workers(), IsEmpty());
    for (const char* word :
         {"{}", "{ x }", "${HOME}", "{{lr}}", "{{x}}", "{", "}{", "{\"a\": 1}"}) {
        EXPECT_EQ(with(word).status, 0) << word;
    }
}

TEST_F(SweepTest, TakesTheTriesOfATable)
{
    m_services.files["t.csv"] = {"lr,n\n1,2\n3,4\n"};
    const Use done =
        use(k_sweep_verb, {"--detach", "-J", "cal", "--from", "t.csv", "train.py", "{lr}{n}"});
    ASSERT_EQ(done.status, 0) << done.err;
    sweeps::Board board(m_services.memory, key());
    ASSERT_TRUE(board.refresh());
    ASSERT_THAT(board.tries(), SizeIs(2));
    EXPECT_THAT(board.tries()[1].values, ElementsAre("3", "4"));
}

TEST_F(SweepTest, TakesTheTriesOfStandardInput)
{
    Pipe pipe = *make_pipe();
    ASSERT_TRUE(write_all(pipe.write.get(), "{\"lr\": 1}\n{\"lr\": 2}\n"));
    pipe.write.reset();
    const Descriptor before(::dup(STDIN_FILENO));
    ::dup2(pipe.read.get(), STDIN_FILENO);
    const Use done =
        use(k_sweep_verb, {"--detach", "-J", "cal", "--from", "-", "train.py", "{lr}"});
    const Use empty = use(k_sweep_verb, {"--detach", "--from", "-", "train.py", "{lr}"});
    ::dup2(before.get(), STDIN_FILENO);
    ASSERT_EQ(done.status, 0) << done.err;
    sweeps::Board board(m_services.memory, key());
    ASSERT_TRUE(board.refresh());
    EXPECT_THAT(board.tries(), SizeIs(2));
    EXPECT_EQ(empty.status, 2);
    EXPECT_THAT(empty.err, HasSubstr("-:1: no tries"));
}

TEST_F(SweepTest, WaitsForOneTry)
{
    begin();
    end_next(TryEnd::finished, 3, 0.5);
    const Use failed = use(k_wait_verb, {"cal/1"});
    EXPECT_EQ(failed.status, 3);
    EXPECT_EQ(failed.err, "gpuq: try 1 (lr=1 n=3): exit status 3, best loss 0.5\n");
    Globals json;
    json.json = true;
    EXPECT_THAT(use(k_wait_verb, {"cal/1"}, json).out, HasSubstr("\"try\": 1"));
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    const Use stopped = use(k_wait_verb, {"cal/2"});
    EXPECT_EQ(stopped.status, 123);
    EXPECT_EQ(stopped.err, "gpuq: try 2 has not run: sweep cal is stopped\n");
    EXPECT_EQ(use(k_wait_verb, {"cal/9"}).status, 2);
}

TEST_F(SweepTest, IsWaitedForBesideTriesAndRuns)
{
    begin();
    for (int i = 0; i < 4; ++i) {
        end_next(TryEnd::finished, i == 2 ? 5 : 0, 0.5);
    }
    auto run = fakes::some_run(m_services.time.now(), "other", 9);
    fakes::RunOnDisk(m_services.memory, run)
        .submitted(JobId{90})
        .started(JobId{90}, m_services.time.now())
        .ended({7, Cause::finished, "", m_services.time.now()});
    const Use done = use(k_wait_verb, {"cal/1", "other", "cal/3", "cal"});
    EXPECT_EQ(done.status, 7) << "the first that has failed";
    EXPECT_THAT(done.err, AllOf(HasSubstr("try 1 (lr=1 n=3): done"),
                                HasSubstr("try 3 (lr=2 n=3): exit status 5"),
                                HasSubstr("run 90 (other) "), HasSubstr("sweep cal: 3 of 4")));
    EXPECT_EQ(use(k_wait_verb, {"cal/1", "cal", "other"}).status, 1);
    EXPECT_EQ(use(k_wait_verb, {"cal/1", "cal/2"}).status, 0);
    EXPECT_EQ(use(k_wait_verb, {"cal", "none"}).status, 2);
    Globals json;
    json.json = true;
    const Use document = use(k_wait_verb, {"other", "cal/2"}, json);
    EXPECT_THAT(document.out, AllOf(HasSubstr("\"job\": 90"), HasSubstr("\"sweeps\": ["),
                                    HasSubstr("\"try\": 2")));
    EXPECT_EQ(document.err, "");
}

TEST_F(SweepTest, IsWaitedForUntilTheFirstOfSeveralEnds)
{
    begin();
    end_next(TryEnd::finished, 3, 0.5);
    EXPECT_EQ(use(k_wait_verb, {"--any", "cal", "cal/2", "cal/1"}).status, 3);
}

TEST_F(SweepTest, StartsATryAgainAsARun)
{
    begin({"--snapshot", "-t", "2h"});
    const auto code = m_services.memory.read(layout::sweep_snapshot(key()));
    ASSERT_TRUE(code);
    const Use done = use(k_again_verb, {"--detach", "-t", "1h", "cal/4"});
    ASSERT_EQ(done.status, 0) << done.err;
    const auto runs = workers();
    const auto run = std::find_if(runs.begin(), runs.end(),
                                  [](const auto& one) { return one.request.name == "cal-4"; });
    ASSERT_NE(run, runs.end());
    EXPECT_THAT(run->request.program,
                ElementsAre(HasSubstr("python3"), "train.py", "--lr", "2", "4"));
    EXPECT_THAT(run->request.setup.env,
                ElementsAre(testing::Pair("GPUQ_TRY", "4"), testing::Pair("GPUQ_PARAM_lr", "2"),
                            testing::Pair("GPUQ_PARAM_n", "4")));
    EXPECT_EQ(run->request.walltime, 1h);
    EXPECT_FALSE(run->request.sweep);
    EXPECT_EQ(m_services.memory.read(layout::snapshot(run->key)).value(), *code);
    const Use other = use(k_again_verb, {"--detach", "cal/4", "--", "--lr", "9"});
    EXPECT_EQ(other.status, 0) << other.err;
}

TEST_F(SweepTest, StartsNeitherAWholeSweepNorAWorkerAgain)
{
    begin();
    EXPECT_THAT(
        use(k_again_verb, {"--detach", "cal"}).err,
        HasSubstr("cal is a sweep: gpuq again cal/1 starts a try again, gpuq sweep retry cal"));
    const Use worker = use(k_again_verb, {"--detach", "cal-w1"});
    EXPECT_EQ(worker.status, 2);
    EXPECT_THAT(worker.err, HasSubstr("it is a worker of a sweep: gpuq sweep retry"));
}

TEST_F(SweepTest, IsShownWithTheBestTriesFirst)
{
    begin();
    end_next(TryEnd::finished, 0, 0.5);
    end_next(TryEnd::finished, 0, 0.25);
    end_next(TryEnd::crashed, 139, std::nullopt);
    const Use done = use(k_show_verb, {"cal"});
    EXPECT_EQ(done.out,
              "sweep cal (waiting): 2 of 4 tries done, 1 failed, 1 left; best loss 0.25 (try 2: "
              "lr=1 n=4)\n"
              "waiting for a worker: just queued; gpuq why cal\n"
              "code: snapshot of 1 file\n"
              "TRY  STATE    lr  n  BEST  LAST  STEP  TIME  EXIT\n"
              "  2  done     1   4  0.25     -     -   5 s     0\n"
              "  1  done     1   3   0.5     -     -   5 s     0\n"
              "  4  waiting  2   4     -     -     -     -     -\n"
              "  3  crashed  2   3     -     -     -   5 s   139\n");
    const Use one = use(k_show_verb, {"cal/3"});
    EXPECT_THAT(one.out, AllOf(HasSubstr("train.py --lr 2 3\n"), HasSubstr("crashed"),
                               HasSubstr("/tries/3\n")));
    const Use list = use(k_ls_verb, {});
    EXPECT_THAT(list.out, AllOf(HasSubstr("cal    waiting      4     2       1     1        3  "
                                          "loss 0.25 (try 2)"),
                                Not(HasSubstr("cal-w1"))));
    EXPECT_THAT(use(k_ls_verb, {"--all"}).out, HasSubstr("cal-w1"));
    EXPECT_THAT(use(k_show_verb, {"cal/5"}).err, HasSubstr("has no try 5, but 1 to 4"));
    const Use csv = use(k_sweep_verb, {"export", "cal"});
    EXPECT_THAT(csv.out, HasSubstr("\n2,1,4,finished,0,0.25,,,5.000\n"));
}

TEST_F(SweepTest, ExportsNoTwoColumnsOfOneName)
{
    ASSERT_EQ(use(k_sweep_verb, {"--detach", "-J", "cal", "--over", "best=1", "--over", "try=2",
                                 "train.py", "{best}", "{try}"})
                  .status,
              0);
    EXPECT_THAT(use(k_sweep_verb, {"export", "cal"}).out,
                testing::StartsWith("gpuq_try,best,try,end,status,gpuq_best,best_step,last,"
                                    "seconds\n1,1,2,"));
}

TEST_F(SweepTest, ShowsWhyATryWasStoppedEarlyAndRepeatsOnlyThatIfNamed)
{
    begin({"--metric", "loss:min", "--stop-early", "asha:min=9", "--workers", "1"});
    const sweeps::EarlyStop evidence{2, 27, 0.75, 0.5, 7};
    end_next(TryEnd::finished, 0, 0.5);
    end_next(TryEnd::stopped_early, 85, 0.75, evidence);
    for (int i = 0; i < 2; ++i) {
        end_next(TryEnd::finished, 0, 1.0);
    }
    EXPECT_THAT(use(k_show_verb, {"cal"}).out,
                AllOf(HasSubstr("3 of 4 tries done, 1 stopped early; best loss 0.5 (try 1"),
                      HasSubstr("  2  stopped early  1   4  0.75 ")));
    EXPECT_THAT(use(k_show_verb, {"cal/2"}).out,
                AllOf(HasSubstr(": stopped early, exit status 85\n"),
                      HasSubstr("compared     loss 0.75 at step 27 (rung 2 of asha:eta=3,min=9): "
                                "limit 0.5, 7 others\n")));
    const std::string document = use(k_sweep_verb, {"export", "--json", "cal"}).out;
    EXPECT_THAT(document,
                AllOf(HasSubstr(R"("stop_early": "asha:eta=3,min=9")"),
                      HasSubstr(R"("end": "stopped_early")"), HasSubstr(R"("threshold": 0.5)")));
    EXPECT_THAT(use(k_sweep_verb, {"export", "cal"}).out,
                AllOf(HasSubstr("seconds,stop_step,stop_value,stop_threshold,stop_compared\n"),
                      HasSubstr("\n1,1,3,finished,0,0.5,,,5.000,,,,\n"),
                      HasSubstr("\n2,1,4,stopped_early,85,0.75,,,5.000,27,0.75,0.5,7\n")));
    EXPECT_THAT(use(k_sweep_verb, {"retry", "--detach", "cal"}).err,
                HasSubstr("all tries of sweep cal have succeeded or were stopped early"));
    EXPECT_EQ(use(k_sweep_verb, {"retry", "--detach", "cal/5"}).status, 2);
    m_services.time.advance(1s);
    const Use done = use(k_sweep_verb, {"retry", "--detach", "cal/2"});
    ASSERT_EQ(done.status, 0) << done.err;
    sweeps::Board board(m_services.memory, key());
    ASSERT_TRUE(board.refresh());
    EXPECT_EQ(board.tries()[1].state, sweeps::Try::State::waiting);
    EXPECT_TRUE(board.tries()[1].is_exempt);
}

TEST_F(SweepTest, WithProposalsEndsOnceTheyHaveEnded)
{
    std::ofstream(m_dir / "my search.py") << "#!/usr/bin/env python3\n";
    ASSERT_EQ(::chmod((m_dir / "my search.py").c_str(), 0700), 0);
    const Use begun =
        use(k_sweep_verb, {"--detach", "-J", "cal", "--over", "lr=log:1e-5..1", "--propose",
                           "'./my search.py' --fast", "--tries", "2", "train.py", "{lr}"});
    ASSERT_EQ(begun.status, 0) << begun.err;
    EXPECT_THAT(workers(), SizeIs(2));
    const auto sweep = sweeps::find_sweep(m_services.memory, "cal");
    EXPECT_EQ(sweep->propose,
              (sweeps::Proposals{{"./my search.py", "--fast"}, {"lr=log:1e-5..1"}, 2}));
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, HasSubstr("sweep cal (waiting): 0 of 0 tries"));
    ASSERT_TRUE(sweeps::add_tries(m_services.memory, key(), {{"0.1"}}));
    end_next(TryEnd::finished, 0, 0.5);
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, HasSubstr("sweep cal (waiting): 1 of 1 try"));
    ASSERT_TRUE(
        m_services.memory.write(layout::sweep_closed(key()), "my search.py: exit status 1"));
    EXPECT_THAT(use(k_show_verb, {"cal"}).out,
                AllOf(HasSubstr("sweep cal (ended): 1 of 1 try"),
                      HasSubstr("no more proposals: my search.py: exit status 1\n")));
    EXPECT_THAT(use(k_sweep_verb, {"export", "--json", "cal"}).out,
                HasSubstr(R"("failure": "my search.py: exit status 1")"));
    m_services.time.advance(1s);
    EXPECT_EQ(use(k_sweep_verb, {"retry", "--detach", "cal"}).status, 0) << "asks again";
    EXPECT_FALSE(m_services.memory.size(layout::sweep_closed(key())));
    ASSERT_TRUE(m_services.memory.write(layout::sweep_closed(key()), ""));
    EXPECT_THAT(use(k_sweep_verb, {"retry", "--detach", "cal"}).err, HasSubstr("have succeeded"));
}

TEST_F(SweepTest, QueriesSlurmRarelyWhileTheWorkersThatAskForProposalsWait)
{
    CreatingStore store;
    m_services.directory = &store;
    ASSERT_EQ(use(k_sweep_verb, {"--detach", "-J", "cal", "--workers", "1", "--over", "n=1..9",
                                 "--propose", "search", "train.py", "{n}"})
                  .status,
              0);
    store.path = layout::sweep_closed(sweeps::find_sweep(store, "cal")->run.key);
    for (const Arguments& waiting : {Arguments{"cal"}, Arguments{"cal", "cal"}}) {
        store.files.erase(store.path);
        store.at = 8;
        m_services.slurm.requests.clear();
        EXPECT_EQ(use(k_wait_verb, waiting).status, 0);
        EXPECT_LT(store.at, 1);
        EXPECT_LE(std::count(m_services.slurm.requests.begin(), m_services.slurm.requests.end(),
                             "own_jobs"),
                  2 * static_cast<std::ptrdiff_t>(waiting.size()))
            << "at the beginning and at the end";
    }
}

TEST_F(SweepTest, IsStoppedWithItsWaitingWorkers)
{
    begin();
    const Use done = use(k_stop_verb, {"cal"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_TRUE(m_services.memory.size(layout::sweep_stop(key())));
    for (const Job& job : m_services.slurm.jobs) {
        EXPECT_EQ(job.state, JobState::cancelled);
    }
    EXPECT_EQ(use(k_logs_verb, {"-f", "cal/1"}).status, 123); // not for ever
    EXPECT_EQ(use(k_stop_verb, {"--checkpoint", "cal"}).status, 2);
    const Use one = use(k_stop_verb, {"cal/2"});
    EXPECT_TRUE(m_services.memory.size(layout::try_stop(key(), 2)));
}

TEST_F(SweepTest, IsNotStoppedAfterItsEnd)
{
    begin();
    end_next(TryEnd::finished, 0, 1.0);
    EXPECT_EQ(use(k_stop_verb, {"cal/1"}).err, "gpuq: try cal/1 has ended already\n");
    EXPECT_FALSE(m_services.memory.size(layout::try_stop(key(), 1)));
    for (int i = 0; i < 3; ++i) {
        end_next(TryEnd::finished, 0, 1.0);
    }
    EXPECT_EQ(use(k_stop_verb, {"cal"}).err, "gpuq: sweep cal has ended already\n");
    Globals json;
    json.json = true;
    EXPECT_THAT(use(k_stop_verb, {"cal"}, json).out, HasSubstr("\"ended_before\""));
    EXPECT_FALSE(m_services.memory.size(layout::sweep_stop(key())));
}

TEST_F(SweepTest, IsExplainedByTheWorkerThatStartsNext)
{
    begin();
    ASSERT_THAT(m_services.slurm.jobs, SizeIs(3));
    m_services.slurm.jobs[0].state = JobState::running;
    m_services.slurm.jobs[1].reason = m_services.slurm.jobs[2].reason = "Priority";
    for (const char* name : {"cal", "cal/3"}) {
        const Use done = use(k_why_verb, {name});
        EXPECT_EQ(done.status, 0) << done.err;
        EXPECT_THAT(done.out, HasSubstr("(cal-w2) waits: others are before you"));
        EXPECT_THAT(done.out, HasSubstr("  gpuq sweep -t TIME ...  "));
    }
    EXPECT_THAT(use(k_show_verb, {"cal"}).out,
                HasSubstr("\nwaiting for a worker: others are before you; gpuq why cal\n"));
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    EXPECT_THAT(use(k_why_verb, {"cal"}).out, HasSubstr("(cal-w1) does not wait: it is running"));
    m_services.slurm.jobs[0].state = JobState::cancelled;
    const Use stopped = use(k_why_verb, {"cal"});
    EXPECT_EQ(stopped.status, 2);
    EXPECT_THAT(stopped.err, HasSubstr("sweep cal (stopped) has no worker that could wait"));
}

TEST_F(SweepTest, RepeatsFailedTriesWithNewWorkers)
{
    begin({"--workers", "1", "-g", "2"});
    end_next(TryEnd::finished, 1, std::nullopt);
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    m_services.time.advance(1s);
    const Use done = use(k_sweep_verb, {"retry", "--detach", "cal"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_FALSE(m_services.memory.size(layout::sweep_stop(key())));
    const auto runs = workers();
    ASSERT_THAT(runs, SizeIs(2));
    EXPECT_EQ(runs.front().request.name, "cal-w2");
    EXPECT_EQ(runs.front().request.gpus.count, 2);
    sweeps::Board board(m_services.memory, key());
    ASSERT_TRUE(board.refresh());
    EXPECT_EQ(board.tries().front().state, sweeps::Try::State::waiting);
    EXPECT_EQ(use(k_sweep_verb, {"retry", "cal", "9"}).status, 2);
    EXPECT_THAT(use(k_sweep_verb, {"retry", "cal", "--host", "x"}).err, HasSubstr("belong before"));
    EXPECT_EQ(use(k_sweep_verb, {"export", "-Q", "--json", "cal"}).out.front(), '{');
}

TEST_F(SweepTest, GetsMoreTriesInTheOrderOfItsParameters)
{
    begin();
    const Use added =
        use(k_sweep_verb, {"add", "cal", "--detach", "--over", "n=7", "--over", "lr=8"});
    ASSERT_EQ(added.status, 0) << added.err;
    sweeps::Board board(m_services.memory, key());
    ASSERT_TRUE(board.refresh());
    EXPECT_THAT(board.tries().back().values, ElementsAre("8", "7"));
    const Use wrong = use(k_sweep_verb, {"add", "cal", "--over", "n=7"});
    EXPECT_THAT(wrong.err, HasSubstr("have the parameters lr, n"));
}

TEST_F(SweepTest, LogsOfATryAreItsOutput)
{
    begin();
    m_services.memory.append(layout::try_log(key(), 2), "one\ntwo\n");
    EXPECT_EQ(use(k_logs_verb, {"cal/2"}).out, "one\ntwo\n");
    EXPECT_EQ(use(k_logs_verb, {"cal/1"}).out, "");
    EXPECT_THAT(use(k_logs_verb, {"cal"}).err, HasSubstr("which try? gpuq logs cal/1"));
    EXPECT_THAT(use(k_logs_verb, {"--to", "x", "cal/2"}).err, HasSubstr("--to: not for the log"));
}

TEST_F(SweepTest, TheLogOfATryThatNoWorkerWillTakeIsNotFollowed)
{
    begin({"--workers", "1"});
    fakes::RunOnDisk(m_services.memory, workers().front())
        .submitted(JobId{1})
        .ended({1, Cause::finished, "", m_services.time.now()});
    EXPECT_EQ(use(k_logs_verb, {"-f", "cal/2"}).status, 119) << "its workers are gone";
    ASSERT_EQ(use(k_stop_verb, {"cal"}).status, 0);
    EXPECT_EQ(use(k_logs_verb, {"-f", "cal/2"}).status, 123);
}

TEST_F(SweepTest, IsRemovedWithTheLastOfItsWorkers)
{
    begin();
    for (int i = 0; i < 4; ++i) {
        end_next(TryEnd::finished, 0, 1.0);
    }
    sweeps::forget_outdated(m_services.memory, m_services.time.now());
    ASSERT_TRUE(sweeps::find_sweep(m_services.memory, "cal"));
    EXPECT_THAT(use(k_show_verb, {"cal"}).out, HasSubstr("sweep cal (ended): 4 of 4 tries done"));
    const RunKey sweep = key();
    for (const gpuq::Run& run : workers()) {
        ASSERT_TRUE(m_services.memory.remove_tree(layout::run_dir(run.key)));
    }
    sweeps::forget_outdated(m_services.memory, m_services.time.now());
    EXPECT_TRUE(m_services.memory.size(layout::sweep_json(sweep))) << "not known to have ended";
    ASSERT_TRUE(m_services.memory.remove(layout::active_sweep(sweep)));
    sweeps::forget_outdated(m_services.memory, m_services.time.now());
    EXPECT_TRUE(m_services.memory.size(layout::sweep_json(sweep))) << "may still be written";
    sweeps::forget_outdated(m_services.memory, m_services.time.now() + 2h);
    EXPECT_FALSE(m_services.memory.size(layout::sweep_json(sweep)));
}

} // namespace
} // namespace gpuq::cli
