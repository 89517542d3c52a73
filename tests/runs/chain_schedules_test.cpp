// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/exit_status.h"
#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "runs/evidence.h"
#include "runs/next_link.h"
#include "runs/query_status.h"
#include "runs/run_on_disk.h"
#include "runs/succession.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <list>
#include <map>
#include <random>
#include <set>

/// 10,000 seeded schedules of runs with several links against a Slurm that loses responses, fails
/// nodes and becomes unavailable, with users who cancel jobs and programs that crash. Checked
/// invariants: no link runs twice, no link starts after the run was cancelled or has ended, only
/// one program writes at a time, and every run ends and leaves the index of active runs. A schedule
/// that violates one prints its seed and a log of events; `GPUQ_SCHEDULE=SEED test_runs
/// --gtest_filter='*ChainSchedules*'` runs only that schedule.
namespace gpuq {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

constexpr unsigned k_schedules = 10'000;
constexpr unsigned k_shards = 20;

/// Thrown when a process dies in the middle of an action.
struct Killed {};

class Dice {
public:
    explicit Dice(unsigned seed)
        : m_engine(seed * 2654435761u + 12345u)
    {
    }
    int below(int limit) { return static_cast<int>(m_engine() % static_cast<unsigned>(limit)); }
    int between(int low, int high) { return low + below(high - low + 1); }
    bool percent(int chance) { return below(100) < chance; }

private:
    std::minstd_rand m_engine;
};

/// Called around each request to Slurm or the disk; lets other actors run meanwhile.
class Meanwhile {
public:
    virtual ~Meanwhile() = default;
    virtual void before_request() = 0; ///< may throw Killed or advance the clock
    virtual void after_request() = 0;
};

class Disk : public fakes::MemoryStore {
public:
    Meanwhile* meanwhile = nullptr;

    Result<void> write(const std::string& path, std::string_view content) override
    {
        if (m_inside) {
            return MemoryStore::write(path, content);
        }
        return watched([&] { return MemoryStore::write(path, content); });
    }
    Result<void> write_once(const std::string& path, std::string_view content) override
    {
        return watched([&] { return MemoryStore::write_once(path, content); });
    }

private:
    template <typename Action>
    Result<void> watched(Action action)
    {
        meanwhile->before_request();
        m_inside = true;
        auto done = action();
        m_inside = false;
        meanwhile->after_request();
        return done;
    }
    bool m_inside = false;
};

class UnsteadySlurm : public fakes::FakeCluster {
public:
    struct Plan {
        std::optional<JobId> after;
        Time not_before;
    };
    Dice& dice;
    fakes::FakeClock& clock;
    Meanwhile* meanwhile = nullptr;
    bool calm = false;
    int answers_lost = 0;
    Time out_until{};
    std::map<JobId, Plan> plans;
    std::vector<std::pair<Time, JobSpec>> in_flight; ///< carried out later; the response was lost
    std::function<void(Job&)> end_job;               ///< effect of scancel

    UnsteadySlurm(Dice& the_dice, fakes::FakeClock& the_clock)
        : dice(the_dice)
        , clock(the_clock)
    {
    }

    bool is_out() const { return clock.now() < out_until; }

    Result<std::vector<Job>> own_jobs() override
    {
        TRY(ask());
        return jobs;
    }
    Result<Job> job(JobId id) override
    {
        TRY(ask());
        const Job* found = find(id);
        return found ? Result<Job>(*found) : fail(Error::Kind::missing, "no such job");
    }
    Result<JobId> submit(const JobSpec& spec, const std::string&,
                         const std::vector<std::string>&) override
    {
        TRY(ask());
        if (unsure(6)) {
            in_flight.emplace_back(clock.now() + seconds(dice.between(1, 18)), spec);
            return lost();
        }
        const JobId id = add(spec);
        meanwhile->after_request();
        return unsure(10) ? Result<JobId>(lost()) : id;
    }
    Result<void> cancel(JobId id) override
    {
        TRY(ask());
        if (unsure(10)) {
            return lost();
        }
        if (Job* job = find(id); job != nullptr && !is_over(job->state)) {
            end_job(*job);
        }
        meanwhile->after_request();
        return unsure(10) ? Result<void>(lost()) : Result<void>{};
    }

    JobId add(const JobSpec& spec)
    {
        Job job;
        job.id = JobId{next_id++};
        job.comment = spec.comment;
        job.state = JobState::pending;
        job.batch = true;
        jobs.push_back(job);
        plans[job.id] = {spec.after_any, clock.now() + spec.pause + seconds(dice.between(0, 3))};
        return job.id;
    }

private:
    Error lost()
    {
        ++answers_lost;
        return fail(Error::Kind::unreachable, "the answer is lost");
    }
    bool unsure(int chance) { return !calm && dice.percent(chance); }
    Result<void> ask()
    {
        meanwhile->before_request();
        if (is_out() || unsure(4)) {
            return lost();
        }
        return {};
    }
};

/// The job of a link and the supervisor with its program.
struct Process {
    JobId job;
    LinkNumber link;
    enum class Phase { judging, program, settling, parting, gone } phase = Phase::judging;
    Time wake{};
    Time submit_at{}, checkpoint_at{}, noticed_at{}, ends_at{}, fate_at{};
    bool crashes = false;
    bool submitted = false;
    LinkPast self;
    int progress = 0; ///< at the time of its start
    bool dead = false;
    Time deaf_until{}; ///< cannot access the disk until then
    bool termed = false;
    bool busy = false; ///< in the middle of a request
    int fuse = 0;      ///< dies at the nth request from now; 0: never
    std::string host;
};

/// Runs one schedule.
class Schedule : public Meanwhile {
public:
    explicit Schedule(unsigned seed)
        : m_dice(seed)
        , m_slurm(m_dice, m_clock)
    {
        m_disk.meanwhile = this;
        m_slurm.meanwhile = this;
        m_slurm.end_job = [this](Job& job) { end_by_cancel(job); };
        set_up();
    }

    void run()
    {
        while (m_clock.now() < m_calm_at && !m_failed && !is_idle()) {
            pass(seconds(m_dice.between(1, 12)));
        }
        m_slurm.calm = true;
        m_slurm.out_until = {};
        m_user_at = Time::max();
        log_line("calm");
        // From now on, without faults, everything must come to an end.
        for (int i = 0; i < 600 && !m_failed && !has_ended(); ++i) {
            pass(seconds(m_dice.between(5, 15)));
            if (i % 8 == 0) {
                watch(0);
            }
        }
        check_end();
    }

    bool failed() const { return m_failed; }
    const std::string& story() const { return m_story; }
    int links() const { return static_cast<int>(m_started.size()); }
    bool finished() const { return m_final && m_final->cause == Cause::finished; }

    void before_request() override
    {
        burn();
        if (m_dice.percent(m_slurm.calm ? 2 : 12) && m_depth < 3) {
            pass(seconds(m_dice.between(1, 10)));
        }
    }
    void after_request() override
    {
        burn();
        if (m_dice.percent(m_slurm.calm ? 0 : 6) && m_depth < 3) {
            pass(seconds(m_dice.between(1, 10)));
        }
    }

private:
    // The environment.

    void set_up()
    {
        Run run = fakes::some_run(m_clock.now(), "train", 1);
        run.cluster = "lab";
        run.request.gpus.count = 1;
        run.request.walltime = 24h;
        run.request.chain.emplace();
        run.request.chain->link = 60s;
        run.request.chain->from_scratch = true;
        run.request.chain->supervisor = "/s";
        if (m_dice.percent(20)) {
            run.request.chain->first = 20s;
        }
        m_work = m_dice.between(30, 260);
        if (m_dice.percent(15)) {
            run.request.chain->max_links = m_dice.between(1, 4);
        }
        if (m_dice.percent(10)) {
            run.request.walltime = std::chrono::minutes(m_dice.between(1, 4));
        }
        m_run = run;
        m_calm_at = m_clock.now() + seconds(m_dice.between(100, 500));
        JobSpec spec;
        spec.comment = job_comment(run.key, LinkNumber{1});
        const JobId first = m_slurm.add(spec);
        fakes::RunOnDisk(m_disk, run).submitted(first);
        plan_faults();
    }

    void plan_faults()
    {
        const int kind = m_dice.below(10);
        m_ui = kind < 5 ? UserInterface::leaves_it : static_cast<UserInterface>(kind - 4);
        m_user_at = m_clock.now() + seconds(m_dice.between(1, 400));
        m_node_failures = m_dice.percent(50) ? m_dice.between(1, 3) : 0;
        m_crashes = m_dice.percent(30) ? m_dice.between(1, 2) : 0;
        m_kills = m_dice.percent(60) ? m_dice.between(1, 5) : 0;
        m_watchers = m_dice.between(0, 2);
    }

    void log_line(const std::string& what)
    {
        m_story += fmt::format("{:5} {}\n", (m_clock.now() - m_run.submitted_at) / 1s, what);
    }
    void broken(const std::string& what)
    {
        log_line("BROKEN: " + what);
        m_failed = true;
    }

    /// Advances the clock; every actor that is not waiting for a response acts.
    void pass(seconds time)
    {
        ++m_depth;
        m_clock.advance(time);
        Process* const asker = std::exchange(m_actor, nullptr);
        const int fuse = std::exchange(m_fuse, 0);
        weather();
        schedule_jobs();
        for (Process& process : m_processes) {
            if (process.phase != Process::Phase::gone && !process.busy) {
                act(process);
            }
        }
        if (!m_user_busy && m_clock.now() >= m_user_at) {
            act_as_user();
        }
        for (int i = 0; i < m_watchers && !m_slurm.calm; ++i) {
            if (!m_watching[i] && m_dice.percent(6)) {
                watch(i);
            }
        }
        beat_and_check();
        m_actor = asker;
        m_fuse = fuse;
        --m_depth;
        if (m_actor != nullptr && (m_actor->dead || m_actor->phase == Process::Phase::gone)) {
            throw Killed{};
        }
    }

    void burn()
    {
        if (m_actor != nullptr && m_actor->dead) {
            throw Killed{};
        }
        if (m_fuse > 0 && --m_fuse == 0) {
            throw Killed{};
        }
    }

    void weather()
    {
        const Time now = m_clock.now();
        if (!m_slurm.calm && !m_slurm.is_out() && m_dice.percent(1)) {
            m_slurm.out_until = now + seconds(m_dice.between(5, 200));
            log_line("the controller is away");
        }
        m_accounting.silent = !m_slurm.calm && m_dice.percent(20);
        std::erase_if(m_held, [&](const auto& held) {
            if (now >= held.first) {
                m_disk.release(held.second);
            }
            return now >= held.first;
        });
        std::vector<JobSpec> arrived;
        std::erase_if(m_slurm.in_flight, [&](const auto& each) {
            if (now >= each.first) {
                arrived.push_back(each.second);
            }
            return now >= each.first;
        });
        for (const JobSpec& spec : arrived) {
            log_line(fmt::format("a late request becomes job {}", m_slurm.add(spec).value));
        }
    }

    void schedule_jobs()
    {
        if (m_slurm.is_out()) {
            return;
        }
        const Time now = m_clock.now();
        std::erase_if(m_slurm.jobs, [&](const Job& job) {
            const bool old = is_over(job.state) && job.ends_at && now - *job.ends_at > 300s;
            return old;
        });
        for (std::size_t i = 0; i < m_slurm.jobs.size(); ++i) {
            Job& job = m_slurm.jobs[i];
            const auto& plan = m_slurm.plans[job.id];
            const Job* after = plan.after ? m_slurm.find(*plan.after) : nullptr;
            if (job.state == JobState::pending && now >= plan.not_before &&
                (after == nullptr || is_over(after->state)) && m_dice.percent(50)) {
                start(job);
            }
        }
    }

    void start(Job& job)
    {
        job.state = JobState::running;
        job.started_at = m_clock.now();
        Process process;
        process.job = job.id;
        process.link = link_in(job.comment);
        process.wake = m_clock.now() + seconds(m_dice.between(0, 2));
        process.host = fmt::format("node{}", m_dice.below(40));
        m_processes.push_back(process);
        log_line(fmt::format("job {} of link {} starts", job.id.value, process.link.value));
    }

    LinkNumber link_in(const std::string& comment) const
    {
        for (LinkNumber link;; ++link.value) {
            if (comment == job_comment(m_run.key, link)) {
                return link;
            }
        }
    }

    /// Marks the job as ended in Slurm and its accounting.
    void over(JobId id, JobState state, int status)
    {
        Job* const job = m_slurm.find(id);
        if (job == nullptr || is_over(job->state)) {
            return;
        }
        job->state = state;
        job->exit_status = status;
        job->ends_at = m_clock.now();
        PastJob past;
        past.id = id;
        past.comment = job->comment;
        past.state = state;
        past.exit_status = status;
        past.ended_at = m_clock.now();
        m_accounting.past[id] = past;
        log_line(fmt::format("job {} is over: {}", id.value, static_cast<int>(state)));
    }

    void end_by_cancel(Job& job)
    {
        if (job.state == JobState::pending) {
            return over(job.id, JobState::cancelled, 0);
        }
        Process* const process = process_of(job.id);
        if (process == nullptr || process->dead || process->phase == Process::Phase::parting ||
            process->phase == Process::Phase::gone) {
            return over(job.id, JobState::cancelled, 0);
        }
        process->termed = true;
        process->wake = m_clock.now();
        job.state = JobState::completing;
    }

    Process* process_of(JobId id)
    {
        for (Process& process : m_processes) {
            if (process.job == id) {
                return &process;
            }
        }
        return nullptr;
    }

    // Supervisors.

    void act(Process& process)
    {
        if (process.dead) {
            if (m_clock.now() >= process.wake && !m_slurm.is_out()) {
                over(process.job, process.termed ? JobState::cancelled : JobState::node_fail, 0);
                process.phase = Process::Phase::gone;
            }
            return;
        }
        process.busy = true;
        m_actor = &process;
        const bool may_die =
            process.link > LinkNumber{1} || process.phase > Process::Phase::judging;
        if (m_kills > 0 && may_die && m_dice.percent(3)) {
            m_fuse = m_dice.between(1, 6);
        }
        try {
            step(process);
        } catch (const Killed&) {
            if (!process.dead) {
                --m_kills;
                m_unsaid = m_unsaid || (process.phase == Process::Phase::settling && m_finished);
                log_line(fmt::format("the supervisor of link {} is killed", process.link.value));
                over(process.job, process.termed ? JobState::cancelled : JobState::failed, 137);
                process.phase = Process::Phase::gone;
            }
        }
        m_fuse = 0;
        m_actor = nullptr;
        process.busy = false;
    }

    void step(Process& process)
    {
        const Time now = m_clock.now();
        if (now < process.deaf_until) {
            return;
        }
        switch (process.phase) {
        case Process::Phase::judging:
            if (process.termed) {
                over(process.job, JobState::cancelled, 0);
                process.phase = Process::Phase::gone;
            } else if (now >= process.wake) {
                take_turn(process);
            }
            break;
        case Process::Phase::program:
            work(process);
            break;
        case Process::Phase::settling:
            conclude(process);
            break;
        case Process::Phase::parting:
            if (now >= process.wake) {
                const int status = process.self.ending->status;
                over(process.job, status == 0 ? JobState::completed : JobState::failed, status);
                process.phase = Process::Phase::gone;
            }
            break;
        case Process::Phase::gone:
            break;
        }
    }

    void take_turn(Process& process)
    {
        seconds length = m_run.request.chain->link;
        const int lost_before = m_slurm.answers_lost;
        if (process.link > LinkNumber{1}) {
            const Succession found = succeed(m_disk, &m_slurm, m_run, process.link, process.job,
                                             m_clock.now(), [](LinkPast&) {});
            if (found.is == Succession::Is::wait) {
                process.wake = m_clock.now() + 15s;
                return;
            }
            if (found.is == Succession::Is::leave || process.termed) {
                over(process.job, process.termed ? JobState::cancelled : JobState::completed, 0);
                process.phase = Process::Phase::gone;
                return;
            }
            length = next_length(m_run.request, found.links, m_clock.now());
        } else if (!m_disk.write_once(layout::claim(m_run.key, process.link),
                                      fmt::format("{}\n", process.job.value)) ||
                   process.termed) {
            over(process.job, process.termed ? JobState::cancelled : JobState::completed, 0);
            process.phase = Process::Phase::gone;
            return;
        }
        // A scancel after the previous link's end is recorded only in Slurm: if a response was
        // lost, this link may not know of it.
        m_unheard = m_slurm.answers_lost > lost_before;
        begin(process, length);
    }

    void begin(Process& process, seconds length)
    {
        const Time now = m_clock.now();
        process.self.link = process.link;
        process.self.started_at = now;
        process.self.host = process.host;
        process.ends_at = now + length;
        process.progress = m_saved;
        process.submit_at = now + seconds(m_dice.between(0, 20));
        process.checkpoint_at = now + seconds(m_dice.between(3, 30));
        process.noticed_at = process.ends_at - std::min<seconds>(10s, length / 2);
        process.fate_at = Time::max();
        Event started = event(Event::Kind::supervisor_started);
        started.job = process.job.value;
        started.host = process.host;
        record(process, started);
        beat(process);
        const bool stopped = stop_is_asked();
        if (stopped) {
            finish(process, Cause::stopped, 123);
            return;
        }
        process.phase = Process::Phase::program;
        if (m_node_failures > 0 && m_dice.percent(40)) {
            --m_node_failures;
            process.fate_at = now + seconds(m_dice.between(1, 70));
        } else if (m_crashes > 0 && m_saved > 0 && m_dice.percent(50)) {
            --m_crashes;
            process.crashes = true;
            process.fate_at = now + seconds(m_dice.between(1, 50));
        }
        log_line(fmt::format("the program of link {} runs, from {}", process.link.value, m_saved));
        check_start(process);
        m_started.push_back(process.link.value);
    }

    bool stop_is_asked()
    {
        return m_disk.files.contains(layout::inbox(m_run.key) + "/" + layout::k_stop_request);
    }

    int progress_of(const Process& process)
    {
        return process.progress + static_cast<int>((m_clock.now() - *process.self.started_at) / 1s);
    }

    void work(Process& process)
    {
        const Time now = m_clock.now();
        if (leaves_fenced(process)) {
            return;
        }
        if (process.termed) {
            finish(process, stop_is_asked() ? Cause::stopped : Cause::cancelled, 123);
        } else if (stop_is_asked()) {
            finish(process, Cause::stopped, 123);
        } else if (now >= process.fate_at) {
            meet_fate(process);
        } else if (progress_of(process) >= m_work) {
            finish(process, Cause::finished, 0);
        } else if (now >= process.ends_at) {
            finish(process, Cause::time_limit, 124);
        } else if (now >= process.noticed_at && !process.self.noticed_at) {
            process.self.noticed_at = now;
            record(process, event(Event::Kind::noticed));
        } else if (process.self.noticed_at && m_dice.percent(60)) {
            save(process);
            process.self.saved_after_notice = true;
            finish(process, Cause::finished, m_dice.percent(50) ? 85 : 0);
        } else if (now >= process.checkpoint_at) {
            save(process);
            process.checkpoint_at = now + seconds(m_dice.between(5, 40));
        } else if (!process.submitted && now >= process.submit_at) {
            submit_next(process);
        }
    }

    /// Once the next link has begun, this one must not write any more.
    bool leaves_fenced(Process& process)
    {
        if (!m_disk.files.contains(layout::claim(m_run.key, next_of(process)))) {
            return false;
        }
        log_line(fmt::format("link {} is fenced", process.link.value));
        process.phase = Process::Phase::gone;
        over(process.job, JobState::failed, 119);
        m_unsaid = m_unsaid || m_finished;
        return true;
    }

    void meet_fate(Process& process)
    {
        if (process.crashes) {
            return finish(process, Cause::crashed, 139);
        }
        process.fate_at = Time::max();
        const Time seen_at = m_clock.now() + seconds(m_dice.between(1, 40));
        if (m_dice.percent(60)) {
            log_line(fmt::format("the node of link {} dies", process.link.value));
            process.dead = true;
            process.wake = seen_at;
            return;
        }
        log_line(fmt::format("the node of link {} is cut off", process.link.value));
        if (m_dice.percent(50)) {
            process.deaf_until = seen_at + seconds(m_dice.between(0, 120));
        }
        over(process.job, JobState::node_fail, 0);
    }

    void save(Process& process)
    {
        m_saved = std::max(m_saved, progress_of(process));
        process.self.checkpoint = fmt::format("/ckpt/{}", m_saved);
        Event saved = event(Event::Kind::checkpoint);
        saved.detail = process.self.checkpoint;
        record(process, saved);
    }

    void submit_next(Process& process)
    {
        std::vector<LinkPast> links = read_links(m_disk, m_run.key, process.link);
        links.back() = process.self;
        links.back().ending = Ending{0, Cause::time_limit, "", process.ends_at};
        const seconds length = next_length(m_run.request, links, process.ends_at);
        const auto& most = m_run.request.chain->max_links;
        if (length < 5s || (most && process.link.value >= *most)) {
            process.submitted = true;
            return;
        }
        NextLink next;
        next.link = next_of(process);
        next.length = length;
        next.after = process.job;
        const auto job = submit_link(m_disk, m_slurm, m_clock, m_run, next);
        process.submitted = job.has_value();
        process.submit_at = m_clock.now() + 60s;
        if (job) {
            log_line(fmt::format("link {} has job {}", next.link.value, job->value));
        }
    }

    void finish(Process& process, Cause cause, int status)
    {
        process.self.ending = Ending{status, cause, "", m_clock.now()};
        process.phase = Process::Phase::settling;
        log_line(fmt::format("the program of link {} has ended: {} {}", process.link.value,
                             word(cause), status));
        m_finished = m_finished || (cause == Cause::finished && status == 0);
    }

    void conclude(Process& process)
    {
        if (leaves_fenced(process)) {
            return;
        }
        std::vector<LinkPast> links = read_links(m_disk, m_run.key, process.link);
        links.back() = process.self;
        Verdict verdict = decide_next(m_run.request, links, m_clock.now());
        if (verdict.decision == Verdict::Decision::next_link) {
            NextLink next;
            next.link = next_of(process);
            next.length = next_length(m_run.request, links, m_clock.now());
            next.after = process.job;
            hand_over(m_disk, &m_slurm, m_clock, m_run, next, verdict);
        }
        if (verdict.decision == Verdict::Decision::over) {
            (void)withdraw_link(m_disk, m_slurm, m_run, next_of(process));
            process.self.ending = verdict.ending;
        } else {
            process.self.ending->continues = true;
        }
        if (leaves_fenced(process)) {
            return;
        }
        Event ended = event(Event::Kind::ended);
        ended.status = process.self.ending->status;
        ended.cause = process.self.ending->cause;
        ended.detail = process.self.ending->detail;
        ended.continues = process.self.ending->continues;
        if (m_dice.percent(20) && !m_slurm.calm) {
            const std::string path = layout::journal(m_run.key, process.link);
            m_disk.hold(path);
            m_held.emplace_back(m_clock.now() + seconds(m_dice.between(1, 10)), path);
        }
        beat(process);
        record(process, ended);
        m_done = m_done || !ended.continues;
        log_line(fmt::format("link {} ends: {} {}{}", process.link.value,
                             word(process.self.ending->cause), process.self.ending->status,
                             ended.continues ? ", the next goes on" : ""));
        process.phase = Process::Phase::parting;
        process.wake = m_clock.now() + seconds(m_dice.between(0, 3));
        if (process.termed) {
            over(process.job, JobState::cancelled, 0);
            process.phase = Process::Phase::gone;
        }
    }

    static LinkNumber next_of(const Process& process) { return {process.link.value + 1}; }

    Event event(Event::Kind kind)
    {
        Event event;
        event.kind = kind;
        event.at = m_clock.now();
        return event;
    }
    void record(const Process& process, const Event& event)
    {
        m_disk.append(layout::journal(m_run.key, process.link), to_line(event));
    }
    void beat(const Process& process)
    {
        m_disk.files[layout::heartbeat(m_run.key, process.link)] =
            to_line(Heartbeat{m_clock.now(), process.job, 1, 0, 0});
    }

    // Users.

    void act_as_user()
    {
        m_user_busy = true;
        m_user_at = Time::max();
        try {
            if (m_ui == UserInterface::stops) {
                stop();
            } else if (m_ui != UserInterface::leaves_it) {
                scancel();
            }
        } catch (const Killed&) {
        }
        m_user_busy = false;
    }

    void scancel()
    {
        if (m_slurm.is_out()) {
            m_user_at = m_clock.now() + 5s;
            return;
        }
        std::vector<JobId> meant;
        for (const Job& job : m_slurm.jobs) {
            const bool pending = job.state == JobState::pending;
            const bool running = job.state == JobState::running;
            if ((pending && m_ui != UserInterface::cancels_running) ||
                (running && m_ui != UserInterface::cancels_pending)) {
                meant.push_back(job.id);
            }
        }
        if (meant.empty()) {
            m_user_at = m_clock.now() + 3s;
            return;
        }
        for (const JobId id : meant) {
            Job& job = *m_slurm.find(id);
            // Only one of two jobs for a link counts, and the user cannot know which.
            const bool counts = is_the_job_of_its_link(job);
            log_line(fmt::format("scancel {}{}", id.value, counts ? "" : ", one of two"));
            end_by_cancel(job);
            m_cancelled = m_cancelled || counts;
        }
    }

    bool is_the_job_of_its_link(const Job& job)
    {
        const auto alike =
            std::count_if(m_slurm.jobs.begin(), m_slurm.jobs.end(), [&](const Job& other) {
                return other.comment == job.comment && !is_over(other.state);
            });
        const bool more_to_come =
            std::any_of(m_slurm.in_flight.begin(), m_slurm.in_flight.end(),
                        [&](const auto& each) { return each.second.comment == job.comment; });
        // Slurm considered the link dead earlier, and a later one is already running.
        const bool superseded = m_disk.files.contains(
            layout::claim(m_run.key, LinkNumber{link_in(job.comment).value + 1}));
        const auto owner = m_disk.files.find(layout::claim(m_run.key, link_in(job.comment)));
        const bool is_twin =
            owner != m_disk.files.end() && owner->second != fmt::format("{}\n", job.id.value);
        return alike == 1 && !more_to_come && !superseded && !is_twin;
    }

    /// Acts like gpuq stop.
    void stop()
    {
        log_line("gpuq stop");
        if (!m_final_is_known()) {
            (void)m_disk.write_once(layout::inbox(m_run.key) + "/" + layout::k_stop_request,
                                    to_json(StopRequest{"ada@login1", m_clock.now()}));
            m_cancelled = true;
        }
        const RunStatus status = query_run(m_services, m_run.key);
        if (status.state != RunState::ended && status.job) {
            if (status.next_job) {
                (void)m_slurm.cancel(*status.next_job);
            }
            (void)m_slurm.cancel(status.job->job);
        }
    }

    bool m_final_is_known()
    {
        return query_run(m_services, m_run.key, SlurmQuery::never).state == RunState::ended;
    }

    void watch(int who)
    {
        m_watching[who] = true;
        m_fuse = m_kills > 0 && m_dice.percent(5) ? m_dice.between(1, 6) : 0;
        try {
            query_run(m_services, m_run.key);
        } catch (const Killed&) {
            log_line("a watcher is killed");
        }
        m_fuse = 0;
        m_watching[who] = false;
    }

    // The invariants.

    void check_start(const Process& process)
    {
        if (!m_ran.insert(process.link).second) {
            broken(fmt::format("a second job runs link {}", process.link.value));
        }
        if (m_cancelled && !m_unheard) {
            broken(fmt::format("link {} runs after the run was cancelled", process.link.value));
        }
        if (m_done) {
            broken(fmt::format("link {} runs after the run was over", process.link.value));
        }
        if (!m_started.empty() && process.link.value != m_started.back() + 1 &&
            !had_a_job(m_started.back() + 1)) {
            broken(fmt::format("link {} follows link {}", process.link.value, m_started.back()));
        }
        const auto& most = m_run.request.chain->max_links;
        if (most && process.link.value > *most) {
            broken("more links than it may have");
        }
    }

    bool had_a_job(int link)
    {
        return m_disk.files.contains(layout::job_json(m_run.key, LinkNumber{link}));
    }

    void beat_and_check()
    {
        int writers = 0;
        for (Process& process : m_processes) {
            const bool alive = !process.dead && m_clock.now() >= process.deaf_until &&
                               process.phase == Process::Phase::program;
            if (!alive) {
                continue;
            }
            beat(process);
            // A process that has just regained the disk sees the fence within a second.
            const bool fenced = m_disk.files.contains(layout::claim(m_run.key, next_of(process)));
            writers += fenced && !process.busy && m_depth == 1 ? 0 : 1;
            writers -= fenced && (process.busy || m_depth > 1) ? 1 : 0;
        }
        if (writers > 1) {
            broken("two programs write");
        }
    }

    /// Nothing will happen any more unless a client checks the run.
    bool is_idle()
    {
        return m_slurm.in_flight.empty() && m_held.empty() &&
               std::none_of(m_slurm.jobs.begin(), m_slurm.jobs.end(),
                            [](const Job& job) { return !is_over(job.state); });
    }

    bool has_ended()
    {
        const bool idle = std::none_of(m_slurm.jobs.begin(), m_slurm.jobs.end(),
                                       [](const Job& job) { return !is_over(job.state); });
        const bool nothing_to_come =
            m_slurm.in_flight.empty() && m_held.empty() && m_user_at == Time::max();
        if (!idle || !nothing_to_come) {
            return false;
        }
        const RunStatus status = query_run(m_services, m_run.key);
        if (status.state == RunState::ended && status.ending) {
            m_final = status.ending;
            return true;
        }
        return false;
    }

    void check_end()
    {
        if (m_failed) {
            return;
        }
        if (!m_final) {
            const RunStatus status = query_run(m_services, m_run.key);
            return broken(fmt::format("it never ends: {} {} {} link {}", word(status.state),
                                      status.reason, status.why_unknown, status.link.value));
        }
        log_line(fmt::format("the run has ended: {} {} {}", word(m_final->cause), m_final->status,
                             m_final->detail));
        if (m_disk.files.contains(layout::active(m_run.key))) {
            broken("it has ended and is listed as active");
        }
        const bool limited = m_run.request.chain->max_links || m_run.request.walltime < 1h;
        const bool meddled = m_ui != UserInterface::leaves_it;
        const bool worn_out = m_final->detail.find("links without a new") != std::string::npos ||
                              m_final->detail.find("nodes in a row") != std::string::npos;
        // The supervisor may already have withdrawn the next job, which looks like a user's
        // scancel.
        const bool has_recorded = !m_unsaid;
        if (!meddled && !limited && !worn_out && has_recorded &&
            m_final->cause != Cause::finished) {
            broken("a chain is lost");
        }
        if (m_final->cause == Cause::finished && m_final->status == 0 && !m_finished) {
            broken("it is told as finished, and its program has not");
        }
    }

    enum class UserInterface {
        leaves_it,
        cancels_running,
        cancels_pending,
        cancels_all,
        stops,
        stops_too
    };

    Dice m_dice;
    fakes::FakeClock m_clock;
    Disk m_disk;
    UnsteadySlurm m_slurm;
    fakes::FakeAccounting m_accounting;
    StatusSources m_services{m_disk, m_clock, [this] { return Result<Cluster*>(&m_slurm); },
                             [this] { return Result<Accounting*>(&m_accounting); }};
    Run m_run{RunKey::make(Time{}, {})};
    std::list<Process> m_processes;
    Time m_calm_at{}, m_user_at{};
    UserInterface m_ui = UserInterface::leaves_it;
    bool m_user_busy = false;
    std::array<bool, 3> m_watching{};
    int m_watchers = 0, m_node_failures = 0, m_crashes = 0, m_kills = 0;
    int m_work = 0, m_saved = 0; ///< seconds of work: in total, and up to the newest checkpoint
    int m_depth = 0, m_fuse = 0;
    Process* m_actor = nullptr;
    std::vector<std::pair<Time, std::string>> m_held;

    std::vector<int> m_started;
    std::set<LinkNumber> m_ran;
    bool m_finished = false;  ///< the program has exited with 0
    bool m_done = false;      ///< the end of the run is recorded on disk
    bool m_unsaid = false;    ///< the supervisor was killed or fenced before it recorded this
    bool m_cancelled = false; ///< by the user
    bool m_unheard = false;   ///< the link that starts could not query Slurm
    std::optional<Ending> m_final;
    bool m_failed = false;
    std::string m_story;
};

struct Tally {
    unsigned schedules = 0, broken = 0, several_links = 0, finished = 0;

    void add(unsigned seed)
    {
        Schedule schedule(seed);
        schedule.run();
        ++schedules;
        several_links += schedule.links() > 1;
        finished += schedule.finished();
        if (schedule.failed() && ++broken <= 3) {
            ADD_FAILURE() << "seed " << seed << ":\n" << schedule.story();
        }
    }
};

class ChainSchedules : public ::testing::TestWithParam<unsigned> {};

TEST_P(ChainSchedules, KeepTheirPromises)
{
    Tally tally;
    if (const char* seed = std::getenv("GPUQ_SCHEDULE")) {
        return tally.add(static_cast<unsigned>(std::atoi(seed)));
    }
    for (unsigned seed = GetParam(); seed < k_schedules; seed += k_shards) {
        tally.add(seed);
    }
    EXPECT_EQ(tally.broken, 0u) << "of " << tally.schedules;
    // Otherwise the schedules would prove nothing.
    EXPECT_GT(tally.several_links, tally.schedules / 2);
    EXPECT_GT(tally.finished, tally.schedules / 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChainSchedules, ::testing::Range(0u, k_shards));

} // namespace
} // namespace gpuq
