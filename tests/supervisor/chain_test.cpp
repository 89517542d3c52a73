// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/timestamp.h"
#include "ports/job.h"
#include "runs/chain.h"
#include "supervisor/chain/chain_work.h"
#include "supervisor/stage.h"

#include <fmt/format.h>

#include <set>
#include <thread>

namespace gpuq::supervisor {
namespace {

using std::chrono::seconds;

/// From the start of a link until its program has installed its traps and the next link's job is
/// submitted. A sanitizer slows the start of each of these processes.
#ifdef __SANITIZE_ADDRESS__
constexpr auto k_start_time = 5s;
#else
constexpr auto k_start_time = 3s;
#endif

/// `save` writes a safetensors file without tensors, which gets its name only when it is complete;
/// `noted` waits for an event in the journal.
constexpr const char* k_shell = R"(
save() {
    printf '\002\000\000\000\000\000\000\000{}' >"$GPUQ_CHECKPOINT_DIR/.new"
    mv "$GPUQ_CHECKPOINT_DIR/.new" "$GPUQ_CHECKPOINT_DIR/step-$1.safetensors"
}
stay() { while :; do sleep 0.02; done; }
kept() { until [ -e "$GPUQ_CHECKPOINT_DIR/../kept/step-$1.safetensors" ]; do sleep 0.02; done; }
noted() { until grep -qs "\"$1\"" "$GPUQ_CHECKPOINT_DIR/../link-1/journal.jsonl"; do sleep 0.02; done; }
)";

/// A link that ends `length` after its start. Its program gets notice after half of that, or 10 s
/// before the end if that is later; at once if `length` is below 3 s.
class Link : public Stage {
public:
    explicit Link(const std::string& program, std::chrono::milliseconds length = 60s)
        : Stage({"/bin/sh", "-c", k_shell + program, "program"})
    {
        run.submitted_at = RealClock().now();
        run.request.walltime = std::chrono::minutes{10};
        run.request.chain = Chain{};
        run.request.chain->supervisor = "/opt/gpuq/bin/gpuq-supervisor";
        run.request.chain->link = std::max(5s, std::chrono::floor<seconds>(length));
        run.request.chain->from_scratch = true;
        options.ends_at = RealClock().now() + length;
    }

    void ask(const std::string& name) const
    {
        const std::string inbox = state(layout::inbox(run.key));
        put(inbox + "/.new", to_json(StopRequest{"ada@login1", Time{}}));
        std::filesystem::rename(inbox + "/.new", inbox + "/" + name);
    }
    std::string checkpoint(int step) const
    {
        return state(layout::checkpoints(run.key)) / fmt::format("step-{}.safetensors", step);
    }
    std::vector<Event::Kind> kinds() const
    {
        std::vector<Event::Kind> kinds;
        for (const Event& each : events()) {
            kinds.push_back(each.kind);
        }
        return kinds;
    }
    std::vector<Event> events_of(Event::Kind kind) const
    {
        std::vector<Event> found;
        for (const Event& each : events()) {
            if (each.kind == kind) {
                found.push_back(each);
            }
        }
        return found;
    }
    /// Comments of the jobs pending in Slurm.
    std::set<std::string> waiting() const
    {
        std::set<std::string> comments;
        for (const auto& entry : std::filesystem::directory_iterator(root() / "slurm" / "jobs")) {
            comments.insert(contents(entry.path()));
        }
        return comments;
    }
    std::set<std::string> next() const { return {job_comment(run.key, LinkNumber{2})}; }
    bool has_next_on_disk() const
    {
        return std::filesystem::exists(state(layout::job_json(run.key, LinkNumber{2})));
    }
    std::set<std::string> names(const std::string& directory) const
    {
        std::set<std::string> found;
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(state(directory), none)) {
            found.insert(entry.path().filename());
        }
        return found;
    }
};

using Kind = Event::Kind;

const std::string k_saves_and = "trap 'save 1; %; ' USR1; echo ready; stay";

std::string saves_and(const std::string& leaves)
{
    std::string text = k_saves_and;
    return text.replace(text.find('%'), 1, leaves);
}

class Leaving : public testing::TestWithParam<const char*> {};

TEST_P(Leaving, AfterTheNoticeGoesOnWhenItHasSaved)
{
    Link link(saves_and(GetParam()), 2 * k_start_time);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_EQ(link.kinds(), (std::vector<Kind>{Kind::supervisor_started, Kind::program_started,
                                               Kind::next_submitted, Kind::noticed,
                                               Kind::checkpoint, Kind::ended}));
    EXPECT_EQ(link.event(Kind::next_submitted)->job, 43U);
    EXPECT_EQ(link.event(Kind::noticed)->detail, "limit");
    EXPECT_EQ(link.event(Kind::checkpoint)->detail, link.checkpoint(1));
    EXPECT_TRUE(link.event(Kind::ended)->continues);
    EXPECT_TRUE(std::filesystem::exists(link.link_file("stop")));
    EXPECT_EQ(link.waiting(), link.next());
    EXPECT_EQ(link.names(layout::kept(link.run.key)), std::set<std::string>{"step-1.safetensors"});
    EXPECT_EQ(contents(link.root() / "slurm" / "calls").find("elsewhere"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Chained, Leaving,
                         testing::Values("exit 85", "exit 0", "exit 1", "kill -KILL $$"),
                         [](const auto& cell) {
                             std::string name = cell.param;
                             std::erase_if(name, [](char each) { return !std::isalnum(each); });
                             return name;
                         });

TEST(Chained, AProgramThatStaysAfterItHasSavedIsEnded)
{
    // The clock of the file server is behind.
    Link link(
        "late() { save 1; touch -d '-0.5 seconds' $GPUQ_CHECKPOINT_DIR/step-1.safetensors; }; "
        "trap late USR1; stay",
        k_start_time + 20s);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues);
    EXPECT_EQ(client.ended->ending.cause, Cause::time_limit);
    EXPECT_LT(client.ended->ending.at, *link.options.ends_at);
}

TEST(Chained, AProgramThatDoesNotHearIsEndedAtTheEnd)
{
    Link link("trap '' USR1; stay", 1000ms);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    const Ending& ending = client.ended->ending;
    EXPECT_EQ(ending.cause, Cause::time_limit);
    EXPECT_TRUE(ending.continues) << "it may begin again from scratch";
    EXPECT_GE(ending.at, *link.options.ends_at);
}

TEST(Chained, TheFirstLinkEndsAtTheDateOfTheRun)
{
    Link link("stay");
    Request& request = link.run.request;
    const Time now = RealClock().now();
    EXPECT_EQ(first_link_start(request, now).length, 60s);
    request.chain->until = now + 20s;
    EXPECT_EQ(first_link_start(request, now).length, 20s);
    request.chain->until = now - 1h;
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    const Ending& ending = client.ended->ending;
    EXPECT_EQ(ending.status, 124);
    EXPECT_EQ(ending.cause, Cause::not_started);
    EXPECT_EQ(ending.detail, "its end date is reached (--until)");
    EXPECT_FALSE(ending.continues);
}

TEST(Chained, WithoutACheckpointNothingBeginsAgainByItself)
{
    Link link("stay", 700ms);
    link.run.request.chain->from_scratch = false;
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 124);
    EXPECT_FALSE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 124);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
    EXPECT_FALSE(link.has_next_on_disk());
}

TEST(Chained, ASaveThatIsTooLateLeavesTheOneBefore)
{
    Link link(
        "save 1; trap 'printf half >$GPUQ_CHECKPOINT_DIR/step-2.safetensors; stay' USR1; stay",
        2 * k_start_time);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues);
    EXPECT_EQ(client.ended->ending.cause, Cause::time_limit);
    EXPECT_GE(client.ended->ending.at, *link.options.ends_at);
    const auto saved = link.events_of(Kind::checkpoint);
    ASSERT_EQ(saved.size(), 1U);
    EXPECT_EQ(saved.front().detail, link.checkpoint(1));
    EXPECT_TRUE(std::filesystem::exists(link.checkpoint(2))) << "the next link puts it aside";
}

TEST(Chained, AProgramThatCanNotBeToldLeavesAfterTheLastSaveThatFits)
{
    // After the first save, another one would fit. The second one comes 40 s later by the clock of
    // the file server; a third one as late again would be beyond the end.
    Link link("save 1; noted checkpoint; echo fits; cd \"$GPUQ_CHECKPOINT_DIR\"; "
              "cp step-1.safetensors .new; touch -d '40 seconds' .new; mv .new step-2.safetensors; "
              "stay");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "fits\n");
    EXPECT_TRUE(client.ended->ending.continues);
    EXPECT_EQ(client.ended->ending.cause, Cause::time_limit);
    EXPECT_EQ(link.events_of(Kind::checkpoint).back().detail, link.checkpoint(2));
    EXPECT_EQ(link.event(Kind::noticed)->detail, "limit");
    EXPECT_LT(client.ended->ending.at, *link.options.ends_at);
}

TEST(Chained, AProgramThatHasFinishedLeavesNoNextLink)
{
    Link link("until [ -e go ]; do sleep 0.02; done");
    Client client = link.begin();
    link.awaited(Kind::next_submitted);
    EXPECT_EQ(link.waiting(), link.next());
    put(link.root() / "go", "");
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending, (Ending{0, Cause::finished, "", client.ended->ending.at}));
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
    EXPECT_FALSE(link.has_next_on_disk());
}

TEST(Chained, AProgramThatFinishesAtOnceLeavesNoNextLink)
{
    Link link("exit 0");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::finished);
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
    EXPECT_FALSE(link.has_next_on_disk());
}

TEST(Chained, AProgramThatFinishesWhileItIsToldHasFinished)
{
    Link link("trap 'exit 0' USR1; stay", 2 * k_start_time);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::finished);
    EXPECT_FALSE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
}

TEST(Chained, ACrashBeforeTheFirstCheckpointEndsTheRun)
{
    Link link("exit 3");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 3);
    EXPECT_FALSE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 3);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
}

TEST(Chained, ACrashAfterACheckpointGoesOn)
{
    Link link("save 1; exit 3");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues);
    EXPECT_EQ(link.event(Kind::checkpoint)->detail, link.checkpoint(1));
    EXPECT_EQ(link.waiting(), link.next());
}

TEST(Chained, AStopThatLetsItSaveEndsTheRun)
{
    Link link(saves_and("exit 0"));
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    link.ask(layout::k_save_and_stop_request);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 123);
    EXPECT_EQ(client.ended->ending.detail, "by ada@login1, with time to save");
    EXPECT_FALSE(client.ended->ending.continues);
    EXPECT_EQ(link.event(Kind::noticed)->detail, "stop");
    EXPECT_EQ(link.event(Kind::checkpoint)->detail, link.checkpoint(1));
    client.close_all();
    EXPECT_EQ(link.wait(), 123);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
}

/// A link on several nodes. Its srun is a stand-in that runs the program once, on this host.
class WideLink : public Link {
public:
    WideLink(const std::string& program, const std::string& elsewhere)
        : Link(program)
    {
        run.request.nodes = 3;
        run.request.setup.env = {{"PATH", root().string() + "/bin:/usr/bin:/bin"}};
        std::filesystem::create_directory(root() / "bin");
        put(root() / "bin" / "srun", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n"
                                     "shift; exec \"$@\"\n");
        std::filesystem::permissions(root() / "bin" / "srun", std::filesystem::perms::owner_all);
        if (!elsewhere.empty()) {
            put(root() / "slurm" / "elsewhere", elsewhere);
        }
    }
    /// Makes the run save and stop.
    void end_by_stop()
    {
        Client client = begin();
        ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
        ask(layout::k_save_and_stop_request);
        ASSERT_TRUE(client.reads_to_the_end());
        EXPECT_EQ(client.ended->ending.status, 123);
        EXPECT_EQ(event(Kind::checkpoint)->detail, checkpoint(1));
        client.close_all();
        EXPECT_EQ(wait(), 123);
    }
    bool was_asked_elsewhere() const
    {
        return contents(root() / "slurm" / "calls").find("elsewhere 42 of 3 notice auto\n") !=
               std::string::npos;
    }
};

TEST(Chained, TheOtherNodesAreToldInOneStep)
{
    WideLink link("trap 'save 1; sleep 0.3; exit 85' USR1; echo ready; stay",
                  "echo told 1; echo told 0");
    link.end_by_stop();
    EXPECT_TRUE(link.was_asked_elsewhere());
    EXPECT_FALSE(link.event(Kind::notice_failed));
}

TEST(Chained, ANodeThatIsNotReachedIsInTheJournal)
{
    WideLink link("trap 'noted notice_failed; save 1; exit 85' USR1; echo ready; stay",
                  "echo told 1; echo srun: error: n3 is gone >&2");
    link.end_by_stop();
    EXPECT_EQ(link.event(Kind::notice_failed)->detail, "1 of 2 reached: srun: error: n3 is gone");
}

TEST(Chained, WhereNoStepCanBeStartedTheFirstNodeIsTold)
{
    WideLink link("trap 'noted notice_failed; save 1; exit 85' USR1; echo ready; stay", "");
    link.end_by_stop();
    EXPECT_TRUE(link.was_asked_elsewhere());
    EXPECT_EQ(link.event(Kind::notice_failed)->detail, "no srun in PATH");
}

TEST(Chained, AStepThatHangsElsewhereDelaysNothing)
{
    WideLink link("trap 'save 1; exit 85' USR1; echo ready; stay", "sleep 1000");
    link.end_by_stop();
    EXPECT_FALSE(link.event(Kind::notice_failed)) << "the end waited for the step";
}

TEST(Chained, AStopWhileItSavesDoesNotWait)
{
    Link link("trap 'echo told' USR1; echo ready; stay");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    link.ask(layout::k_save_and_stop_request);
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\ntold\n"; }));
    client.send(wire::Stop{"ada@login1"});
    ASSERT_TRUE(client.reads_to_the_end()); // it has ten minutes to save
    EXPECT_EQ(client.ended->ending.detail, "by ada@login1");
    EXPECT_EQ(client.ended->ending.status, 123);
    client.close_all();
    EXPECT_EQ(link.wait(), 123);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
}

TEST(Chained, ToldByAPreemptionItGoesOnAsPreempted)
{
    Link link(saves_and("exit 0"));
    link.slurm("state", std::to_string(static_cast<int>(JobState::preempted)));
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    link.awaited(Kind::next_submitted);
    ::kill(link.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::preempted);
    EXPECT_TRUE(client.ended->ending.continues);
    EXPECT_EQ(link.event(Kind::noticed)->detail, "preempted");
    EXPECT_EQ(link.waiting(), link.next());
}

/// Slurm lets a running job with a limit of ten minutes live for `grace`.
void give_grace(const Link& link, std::chrono::milliseconds grace)
{
    const auto number = [](Time time) { return std::to_string(time.time_since_epoch().count()); };
    const Time now = RealClock().now();
    link.slurm("state", std::to_string(static_cast<int>(JobState::running)));
    link.slurm("walltime", "10");
    link.slurm("started", number(now));
    link.slurm("ends_at", number(now + grace));
}

TEST(Chained, FindsOutByAskingThatItHasGraceAndGoesOnAsPreempted)
{
    Link link(saves_and("exit 85"));
    link.options.patience.first_query = 100ms;
    link.options.patience.next_check = 100ms;
    link.run.request.queue = "gpu";
    link.slurm("grace", "30");
    give_grace(link, 600s); // equals the limit: no grace
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    link.awaited(Kind::next_submitted);
    EXPECT_TRUE(
        eventually([&] { return link.slurm_calls().find("job\njob\n") != std::string::npos; }));
    EXPECT_FALSE(link.event(Kind::noticed));
    give_grace(link, 100s);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(link.event(Kind::noticed)->detail, "preempted");
    EXPECT_EQ(client.ended->ending.status, 85);
    EXPECT_TRUE(client.ended->ending.continues);
    EXPECT_EQ(link.waiting(), link.next());
}

TEST(Chained, AsksAgainOnlyWhereItMayGetGrace)
{
    for (const bool may : {true, false}) {
        Link link("sleep 1; until [ -e go ]; do sleep 0.02; done");
        link.run.request.queue = "calibration,gpu";
        link.options.patience.first_query = 50ms;
        link.options.patience.next_check = 100ms;
        link.slurm("grace", may ? "30" : "0");
        give_grace(link, 600s);
        Client client = link.begin();
        const auto has_called = [&](const std::string& lines) {
            return link.slurm_calls().find(lines) != std::string::npos;
        };
        EXPECT_TRUE(eventually([&] { return has_called(may ? "job\njob\n" : "partitions\n"); }));
        put(link.root() / "go", "");
        ASSERT_TRUE(client.reads_to_the_end());
        const std::string calls = link.slurm_calls();
        EXPECT_NE(calls.find("partitions\n"), std::string::npos);
        EXPECT_EQ(calls.find("partitions\n"), calls.rfind("partitions\n")) << "once";
        EXPECT_EQ(calls.find("job\njob\n") != std::string::npos, may) << calls;
    }
}

/// Slurm gives the job another end, which gpuq extend makes the supervisor ask for.
void set_end(const Link& link, Time end)
{
    link.slurm("state", std::to_string(static_cast<int>(JobState::running)));
    link.slurm("ends_at", std::to_string(end.time_since_epoch().count()));
    put(link.link_file("extended"), to_iso8601(end));
}

TEST(Chained, ALinkThatGetsMoreTimeIsToldBeforeItsNewEnd)
{
    Link link(saves_and("exit 85"), 2 * k_start_time);
    const Time first_end = *link.options.ends_at;
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    set_end(link, first_end + 100s);
    const Time new_end{seconds{link.awaited(Kind::limit_changed).to.value_or(0)}};
    EXPECT_GE(new_end, first_end + 98s);
    EXPECT_LE(new_end, first_end + 102s);
    EXPECT_TRUE(eventually([&] {
        return contents(link.link_file("deadline")) ==
               fmt::format("{}\n", *link.event(Kind::limit_changed)->to);
    }));
    std::this_thread::sleep_until(first_end + 1s);
    EXPECT_FALSE(link.event(Kind::noticed));
    set_end(link, RealClock().now() + 2s);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(link.event(Kind::noticed)->detail, "limit");
    EXPECT_EQ(link.event(Kind::checkpoint)->detail, link.checkpoint(1));
    EXPECT_TRUE(client.ended->ending.continues);
}

TEST(Chained, ALinkThatIsToldToLeaveGetsNoMoreTime)
{
    Link link("trap 'echo told' USR1; stay", 5s);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "told\n"; }));
    set_end(link, *link.options.ends_at + 1000s);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::time_limit);
    EXPECT_LT(client.ended->ending.at, *link.options.ends_at + 100s);
    EXPECT_FALSE(link.event(Kind::limit_changed));
    EXPECT_NE(link.slurm_calls().find("job\n"), std::string::npos);
}

TEST(Chained, IsToldOfTheGraceByATermOnceAndStaysUntilItIsOver)
{
    Link link("trap '' TERM; trap 'echo told' USR1; echo ready; stay");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    give_grace(link, 2s);
    const auto before = std::chrono::steady_clock::now();
    ::kill(link.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_GT(std::chrono::steady_clock::now() - before, 1500ms);
    EXPECT_EQ(client.out, "ready\ntold\n");
    EXPECT_EQ(client.ended->ending.cause, Cause::preempted);
    EXPECT_TRUE(client.ended->ending.continues);
}

TEST(Chained, AProgramThatDiesOfTheTermOfTheGraceWasPreempted)
{
    Link link("echo ready; stay");
    give_grace(link, 100s);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out == "ready\n"; }));
    ::kill(client.started->pid, SIGTERM);
    ::kill(link.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::preempted);
    EXPECT_TRUE(client.ended->ending.continues);
}

TEST(Chained, ALinkWhoseNextHasBegunDiesAtOnceAndLeavesThatAlone)
{
    Link link("trap '' TERM USR1; setsid sleep 1000 & echo $!; stay");
    link.options.patience.stop = 600s; // from TERM to KILL, if there were a TERM
    link.kill_wait = 600s;
    Client client = link.begin();
    link.awaited(Kind::next_submitted);
    ASSERT_TRUE(client.reads_until([&] { return client.started && client.out.ends_with("\n"); }));
    const std::string calls = link.slurm_calls();
    put(link.state(layout::claim(link.run.key, LinkNumber{2})), "43\n");
    EXPECT_TRUE(
        eventually([&] { return is_gone(client.started->pid) && is_gone(std::stoi(client.out)); }));
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::lost);
    EXPECT_TRUE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_EQ(link.slurm_calls(), calls + "complete 42 0\n");
    EXPECT_EQ(link.waiting(), link.next());
}

TEST(Chained, WithoutAnAnswerOfSlurmItStillGoesOn)
{
    Link link("save 1; noted next_failed; exit 85");
    link.slurm("deaf", "");
    Client client = link.begin();
    EXPECT_EQ(link.awaited(Kind::next_failed).detail, "deaf");
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues) << "whoever looks at the run submits it";
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_EQ(link.waiting(), std::set<std::string>{});
}

/// A second link of a run whose first link has saved and reached its time limit.
class Second : public Link {
public:
    Second(const std::string& program, bool continues)
        : Link(program)
    {
        options.link = LinkNumber{1};
        put_past(continues);
        options.link = LinkNumber{2};
    }

private:
    void put_past(bool continues)
    {
        const Time now = RealClock().now();
        std::filesystem::create_directories(link_file(""));
        std::filesystem::create_directories(state(layout::checkpoints(run.key)));
        put(checkpoint(7), std::string("\2\0\0\0\0\0\0\0{}", 10));
        Event started{Event::Kind::supervisor_started, now - seconds{120}};
        Event saved{Event::Kind::checkpoint, now};
        saved.detail = checkpoint(7);
        Event ended{Event::Kind::ended, now};
        ended.status = 124;
        ended.cause = Cause::time_limit;
        ended.continues = continues;
        put(link_file("journal.jsonl"), to_line(started) + to_line(saved) + to_line(ended));
        put(link_file("job.json"), to_json(LinkJob{"test", JobId{41}, now, true}));
    }
};

TEST(SecondLink, NotesThatItsProgramHasChanged)
{
    for (const bool changed : {true, false}) {
        Second link("exit 0", true);
        const std::filesystem::path script = link.root() / "train.py";
        put(script, "");
        std::filesystem::last_write_time(script, std::filesystem::file_time_type::clock::now() -
                                                     (changed ? seconds{60} : seconds{180}));
        link.run.request.program.push_back(script);
        Client client = link.begin();
        ASSERT_TRUE(client.reads_to_the_end());
        const auto note = link.event(Kind::code_changed); // the previous link began 120 s ago
        EXPECT_EQ(note.has_value(), changed);
        EXPECT_EQ(note && note->detail == script.string(), changed);
        client.close_all();
        link.wait();
    }
}

TEST(SecondLink, IsToldWhereToGoOn)
{
    Second link("echo $0 $*; env | sort", true);
    link.run.request.chain->link = 50s; // of the 60 s of its job
    link.run.request.chain->resume_args = {"--resume", "{}"};
    link.run.request.setup.env = {{"WANDB_RESUME", "must"}};
    ::setenv("RANK", "3", 1);
    ::setenv("MASTER_ADDR", "n7", 1);
    ::setenv("MASTER_PORT", "29500", 1);
    Client client = link.begin();
    for (const char* name : {"RANK", "MASTER_ADDR", "MASTER_PORT"}) {
        ::unsetenv(name);
    }
    ASSERT_TRUE(client.reads_to_the_end());
    const auto says = [&](const std::string& line) {
        return ("\n" + client.out).find("\n" + line + "\n") != std::string::npos;
    };
    const auto sets = [&](const std::string& name) {
        return ("\n" + client.out).find("\n" + name + "=") != std::string::npos;
    };
    EXPECT_TRUE(says("program --resume " + link.checkpoint(7))) << client.out;
    EXPECT_TRUE(says("GPUQ_CAUSE=timeout"));
    EXPECT_TRUE(says("GPUQ_LINK=2"));
    EXPECT_TRUE(says("GPUQ_RUN_ID=" + link.run.key.text()));
    EXPECT_TRUE(says("GPUQ_RESUME_FROM=" + link.checkpoint(7)));
    EXPECT_TRUE(sets("MASTER_PORT"));
    EXPECT_FALSE(says("MASTER_PORT=29500")) << "of the shell";
    EXPECT_TRUE(says("MASTER_ADDR=127.0.0.1"));
    EXPECT_TRUE(says("WANDB_RUN_ID=" + link.run.key.text()));
    EXPECT_TRUE(says("WANDB_RESUME=must"));
    EXPECT_FALSE(sets("RANK"));
    const auto at = client.out.find("GPUQ_DEADLINE=");
    ASSERT_NE(at, std::string::npos);
    const Time deadline{seconds{std::stoll(client.out.substr(at + 14))}};
    const Time end = link.event(Kind::supervisor_started)->at + link.run.request.chain->link;
    EXPECT_LT(end, *link.options.ends_at) << "a link may be shorter than its job";
    EXPECT_LE(deadline, end + 1s);
    EXPECT_GE(deadline, end - 1s);
    EXPECT_EQ(link.event(Kind::resumed)->detail, link.checkpoint(7));
}

/// What the first link has saved can't be read at its end.
TEST(SecondLink, ThatCrashesWhileTheRecordsAreUnreadableContinues)
{
    Second link("mv $GPUQ_CHECKPOINT_DIR/../run.json $GPUQ_CHECKPOINT_DIR/../away; exit 1", true);
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 0);
}

/// Slurm reports the status of a link without a record: 0 would be that of a run that has finished.
TEST(SecondLink, ThatCannotRecordThatItContinuesHasNotSucceeded)
{
    Second link("read line; exit 1", true);
    link.options.patience.disk = 1s;
    link.run.request.input = Input::terminal;
    Client client = link.begin();
    const rlimit no_writes{1, 1};
    ASSERT_EQ(::prlimit(link.supervisor(), RLIMIT_FSIZE, &no_writes, nullptr), 0);
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.ended->ending.continues);
    client.close_all();
    EXPECT_EQ(link.wait(), 85);
}

TEST(SecondLink, OfARunThatIsOverLeavesAtOnce)
{
    Second link("echo ran", false);
    Client client = link.begin();
    EXPECT_EQ(link.wait(), 0);
    EXPECT_TRUE(link.events().empty());
    EXPECT_FALSE(std::filesystem::exists(link.state(layout::claim(link.run.key, LinkNumber{2}))));
}

TEST(Chained, TheNewestTwoCheckpointsAreKept)
{
    Link link("for step in 1 2 3; do save $step; kept $step; rm $GPUQ_CHECKPOINT_DIR/*; done; "
              "while [ -e $GPUQ_CHECKPOINT_DIR/../kept/step-1.safetensors ]; do sleep 0.02; done");
    Client client = link.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(link.wait(), 0); // an old one is removed after the new one is there
    EXPECT_EQ(link.names(layout::kept(link.run.key)),
              (std::set<std::string>{"step-2.safetensors", "step-3.safetensors"}));
}

TEST(NotChained, ARunPaysNothing)
{
    Stage stage = Stage::shell("ps -o pid= --ppid $PPID | wc -l");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_EQ(std::stoi(client.out), 1) << "the program is the supervisor's only child";
    EXPECT_EQ(stage.slurm_calls(), "complete 42 0\n");
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(stage.link_file(""))) {
        files.insert(entry.path().filename());
    }
    files.erase("reserve"); // not on every file system
    EXPECT_EQ(files, (std::set<std::string>{"claim", "err.log", "heartbeat", "journal.jsonl",
                                            "order", "out.log", "times"}));
    EXPECT_FALSE(std::filesystem::exists(stage.state(layout::kept(stage.run.key))));
    EXPECT_FALSE(
        std::filesystem::exists(stage.state(layout::link_dir(stage.run.key, LinkNumber{2}))));
}

} // namespace
} // namespace gpuq::supervisor
