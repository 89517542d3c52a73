// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/worker.h"

#include "core/exit_status.h"
#include "core/layout.h"
#include "io/event_loop.h"
#include "io/signal_descriptor.h"
#include "io/subprocess.h"
#include "runs/records/record.h"
#include "supervisor/base/program.h"
#include "supervisor/worker/early_stopper.h"
#include "supervisor/worker/grower.h"
#include "supervisor/worker/proposer.h"
#include "supervisor/worker/slot.h"
#include "supervisor/worker/try_programs.h"
#include "sweeps/arguments.h"
#include "sweeps/missing.h"
#include "telemetry/pattern.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// A worker has `per_gpu` slots. Each runs one try at a time, as a child in a session of its own
// whose output goes directly to the try's log, so that it survives a worker that hangs. When the
// worker ends, the kernel ends the child (death_signal), and the guardian of the link its other
// processes.
//
// Order of writes: claim, `began`, [the program], `ended`, next claim. While an end cannot be
// written, for instance to a full disk, nothing else is taken.
//
// A link that is about to end (its stop file exists, or TERM has arrived) takes no more tries. The
// supervisor notifies the programs itself; when they have left, their tries are paused, and this
// process asks for the next link by its status.
//
// A metric that is not in the log of a try is read from the event files that it writes. This
// process searches for them itself, for at most 1 % of the time (event_files.h).
//
// Another child adds a worker to a sweep that grows, also when this one leaves tries at its time
// limit and has no next link, or finds that other jobs wait for the GPUs (grower.h). It is ended
// with this process; a worker that it has claimed and not submitted counts as dead after two
// minutes (sweeps/growth.h).

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using sweeps::TryEnd;
using sweeps::TryEvent;
using sweeps::TryTaker;

constexpr auto k_round = 1s; ///< between two checks of the files; ends are noticed at once
constexpr auto k_retry = 2s; ///< until a failed write or read is repeated
constexpr auto k_between_budgets = 2s; ///< between two checks of the GPU time
constexpr auto k_time_to_save = 30s;   ///< from the notice to TERM, of a try that can save
constexpr auto k_time_to_notice = 3s;  ///< of any other, which may read GPUQ_STOP_FILE
constexpr std::chrono::milliseconds k_between_signals = 300ms; ///< see wait_for_own_signal
constexpr auto k_around_deadline = 1min; ///< a TERM in this time is due to the time limit
constexpr auto k_time_to_add = 10s;      ///< a worker, before this one ends
constexpr int k_terminated = 128 + SIGTERM;
constexpr int k_most_interruptions = 1; ///< of a try without a checkpoint

class Worker {
public:
    Worker(Store& store, Clock& clock, Files& files, const WorkerPlan& plan, sweeps::Sweep sweep)
        : m_store(store)
        , m_clock(clock)
        , m_plan(plan)
        , m_sweep(std::move(sweep))
        , m_taker(store, plan.sweep, plan.self,
                  [&store](const sweeps::Claimant& who) { return is_link_over(store, who); })
        , m_programs(store, plan, m_sweep)
        , m_stopper(m_taker, m_sweep)
        , m_proposer(store, m_sweep, m_taker)
        , m_grower(store, m_sweep, m_taker, plan.self.worker, plan.growth)
        , m_event_listing(files, m_sweep.run.request.work_dir, clock.now())
        , m_signals(block_and_report({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}))
        , m_round(m_loop, [] {})
    {
        if (const char* const text = std::getenv("GPUQ_PROGRESS")) {
            if (auto pattern = telemetry::Pattern::compile(text)) {
                m_pattern.emplace(*std::move(pattern));
            }
        }
    }

    int run()
    {
        ::signal(SIGXFSZ, SIG_IGN); // a limit on file sizes is an error of the write
        m_loop.add([this] { return EventLoop::to_read(m_signals.get()); },
                   [this] { take_signals(); });
        m_round.repeat(k_round);
        while (true) {
            reap();
            write_ends();
            check_files();
            if (!fill_slots() && (m_leaving || m_spent || !m_grower.must_stay(m_clock.now()))) {
                break;
            }
            if (!m_leaving && !m_spent && !m_slots.empty()) {
                update_growth();
            }
            if (m_slots.empty() && m_failing_since) {
                const auto spent = loop_time() - *m_failing_since;
                if (is_removed() || (spent >= m_plan.patience && !end_unstarted())) {
                    return give_up(std::chrono::floor<std::chrono::seconds>(spent));
                }
            }
            m_loop.run_once();
        }
        if (m_unstarted) {
            (void)m_taker.record(end_of(*m_unstarted, TryEnd::paused)); // else it is interrupted
        }
        const bool gives_way = m_grower.gives_way() && m_grower.leaves_another(m_clock.now());
        if (m_leaving && !m_spent && !gives_way && !m_taker.board().is_stopped()) {
            replace_if_time_is_up();
            return k_status_continue_me;
        }
        m_grower.end();
        release_waiting();
        return 0;
    }

private:
    void update_growth()
    {
        const bool gave_way = m_grower.gives_way();
        m_grower.update(loop_time(), m_clock.now());
        if (m_grower.gives_way() && !gave_way) {
            std::fputs("gpuq: other jobs wait for the GPUs: this worker ends after its tries, "
                       "others continue the sweep\n",
                       stderr);
            if (const auto runs = m_store.list(layout::sweep_runs(m_plan.sweep))) {
                withdraw(*runs); // they are before the other jobs in the queue
            }
        }
    }

    /// If only the files of one try can't be created, that one has failed. False: there is none, or
    /// this can't be recorded either.
    bool end_unstarted()
    {
        if (!m_unstarted || !m_taker.record(end_of(*m_unstarted, TryEnd::not_started))) {
            return false;
        }
        print(*m_unstarted, fmt::format("not started: {}", sanitised(m_complaint)));
        m_unstarted.reset();
        m_failing_since.reset();
        return true;
    }

    TryEvent end_of(const TryTaker::Taken& taken, TryEnd end) const
    {
        TryEvent event{TryEvent::Kind::ended, taken.number, taken.attempt, m_clock.now(),
                       m_plan.self.link};
        event.end = end;
        event.status = static_cast<int>(ExitStatus::internal);
        return event;
    }

    /// Without a next link, the tries that this worker leaves would wait for the other workers, of
    /// which there may be none. Not after scancel: the user wants it to end.
    void replace_if_time_is_up()
    {
        if (m_sweep.run.request.chain || !m_plan.deadline ||
            m_clock.now() < *m_plan.deadline - k_around_deadline) {
            return;
        }
        m_grower.replace_this_worker();
        const auto until = loop_time() + k_time_to_add;
        m_grower.update(loop_time(), m_clock.now());
        while (m_grower.is_busy() && loop_time() < until) {
            m_loop.run_once();
            m_grower.update(loop_time(), m_clock.now());
        }
    }

    /// Releases the GPUs, which would be idle until the time limit. Tries whose end was not
    /// recorded run again.
    int give_up(std::chrono::seconds spent)
    {
        std::vector<std::size_t> tries;
        if (m_unstarted) {
            tries.push_back(m_unstarted->number);
        }
        for (const TryEvent& event : m_ends) {
            tries.push_back(event.number);
        }
        const std::string text = fmt::format(
            "nothing could be recorded for {} s ({}): this worker releases its GPUs{}",
            spent.count(), sanitised(m_complaint),
            tries.empty() ? ""
                          : fmt::format("; no end is recorded of try {}, which runs again",
                                        fmt::join(tries, ", ")));
        std::fprintf(stderr, "gpuq: %s\n", text.c_str());
        return static_cast<int>(ExitStatus::internal);
    }

    /// The user has deleted the sweep: no disk to wait for.
    bool is_removed() const
    {
        const std::string file = m_store.root() + "/" + layout::sweep_json(m_plan.sweep);
        return ::access(file.c_str(), F_OK) != 0 && errno == ENOENT;
    }

    /// Withdraws the workers that still wait for GPUs, if no try is left for them, the sweep is
    /// stopped or its GPU time is spent.
    void release_waiting()
    {
        // In this order: a client adds tries, or continues the sweep, before it adds workers.
        const auto runs = m_store.list(layout::sweep_runs(m_plan.sweep));
        if (!runs || !m_taker.refresh()) {
            return;
        }
        const bool is_over = m_spent || m_taker.board().is_stopped();
        if (is_over || sweeps::tally_of(m_taker.board().tries()).waiting == 0) {
            withdraw(*runs);
        }
    }

    /// Those of the given workers that have not started. Those that start in this moment find the
    /// request, and those that can't be withdrawn now leave the queue with the next gpuq ls.
    void withdraw(const std::vector<std::string>& runs)
    {
        std::vector<JobId> jobs;
        for (const std::string& name : runs) {
            const auto run = RunKey::parse(name);
            if (!run || *run == m_plan.self.worker ||
                !sweeps::is_missing(m_store, layout::claim(*run, LinkNumber{1})) ||
                !sweeps::is_missing(m_store, layout::ended_json(*run))) {
                continue;
            }
            const StopRequest request{"worker of the sweep", m_clock.now()};
            (void)m_store.write_once(layout::inbox(*run) + "/" + layout::k_stop_request,
                                     to_json(request));
            const auto text = m_store.read(layout::job_json(*run, LinkNumber{1}));
            const auto job = text ? link_job_from_json(*text) : Result<LinkJob>(text.error());
            if (job) {
                jobs.push_back(job->job);
            }
        }
        if (!jobs.empty()) {
            m_plan.withdraw(jobs);
        }
    }

    /// Starts tries in free slots. False if there is nothing left to do.
    bool fill_slots()
    {
        const bool is_blocked = !m_ends.empty() || loop_time() < m_retry_at;
        while (!m_leaving && !m_grower.gives_way() && !is_blocked && m_slots.size() < per_gpu()) {
            if (check_budget()) {
                break;
            }
            auto taken = m_unstarted ? taken_before() : m_taker.next(m_clock.now());
            if (!taken) {
                complain(taken.error());
                return true;
            }
            if (!*taken) {
                const auto answer = m_proposer.ask(loop_time());
                if (!answer) {
                    complain(answer.error());
                    return true;
                }
                m_failing_since.reset();
                if (*answer == Proposer::Answer::pending) {
                    return true;
                }
                if (*answer == Proposer::Answer::added) {
                    continue;
                }
                break;
            }
            if (!start(**std::move(taken))) {
                return true;
            }
            m_failing_since.reset();
            if (!m_ends.empty()) {
                return true;
            }
        }
        return is_blocked || !m_slots.empty();
    }

    /// The try that could not be started, unless the sweep has been stopped since.
    Result<std::optional<TryTaker::Taken>> taken_before()
    {
        TRY(m_taker.refresh());
        return m_taker.board().is_stopped() ? std::optional<TryTaker::Taken>()
                                            : std::exchange(m_unstarted, std::nullopt);
    }

    /// True once the sweep's GPU time is spent. The running tries then end, and are paused: they
    /// could continue.
    bool check_budget()
    {
        m_spent = m_spent || m_taker.is_spent(m_sweep, m_clock.now());
        return m_spent;
    }

    std::size_t per_gpu() const { return static_cast<std::size_t>(m_sweep.per_gpu); }

    static EventLoop::Moment loop_time() { return EventLoop::Clock::now(); }

    /// False after an error of the disk or the system, which may be temporary: it is repeated.
    bool start(TryTaker::Taken taken)
    {
        auto saved = taken.attempt > 1 ? m_programs.newest_checkpoint(taken) : std::nullopt;
        const std::string resume = saved ? saved->path : "";
        if (resume.empty() && taken.interruptions > k_most_interruptions) {
            end_without_program(taken, TryEnd::lost, static_cast<int>(ExitStatus::lost),
                                "its workers were lost twice, and it has no checkpoint");
            return true;
        }
        // The supervisor has reserved one port, for the worker.
        auto port = per_gpu() > 1 ? MeetingPort::hold() : std::nullopt;
        const auto started = m_programs.start(taken, resume, port ? port->number() : 0);
        if (!started && started.error().kind == Error::Kind::io) {
            complain(started.error());
            m_unstarted = std::move(taken);
            return false;
        }
        if (!started) {
            end_without_program(taken, TryEnd::not_started, static_cast<int>(ExitStatus::internal),
                                started.error().text);
            return true;
        }
        print(taken, fmt::format("{}{}", taken.attempt > 1 ? "continues: " : "",
                                 sanitised(sweeps::values_text(m_sweep.parameters, taken.values))));
        auto slot = std::make_unique<Slot>(std::move(taken), started->pid,
                                           m_pattern ? &*m_pattern : nullptr);
        slot->start_log_at(started->log_size);
        if (saved) {
            slot->continue_from(m_taker.board().tries()[slot->taken().number - 1].reached);
        }
        slot->resume_from(std::move(saved));
        const auto& began = m_taker.board().tries()[slot->taken().number - 1].began_at;
        slot->set_event_files(std::make_unique<EventFiles>(
            m_event_listing, m_programs.event_writer(slot->taken().number, slot->pid(),
                                                     began.value_or(m_clock.now()))));
        slot->hold_port(std::move(port));
        m_stopper.watch(*slot, /*continues=*/!resume.empty());
        m_slots.push_back(std::move(slot));
        return true;
    }

    void reap()
    {
        std::erase_if(m_slots, [this](const auto& slot) {
            int status = 0;
            if (::waitpid(slot->pid(), &status, WNOHANG) != slot->pid()) {
                return false;
            }
            ::kill(-slot->pid(), SIGKILL); // its leftover processes
            if (exit_code(status) == k_terminated && !slot->is_asked() && !m_leaving) {
                wait_for_own_signal();
            }
            conclude(*slot, status);
            return true;
        });
    }

    /// The supervisor ends all processes of the run at once: this process's signal may arrive after
    /// that of the program, which has not failed then.
    void wait_for_own_signal()
    {
        const auto until = loop_time() + k_between_signals;
        while (!m_leaving && loop_time() < until) {
            pollfd signals{m_signals.get(), POLLIN, 0};
            ::poll(&signals, 1, static_cast<int>(k_between_signals.count()));
            take_signals();
        }
    }

    void conclude(Slot& slot, int wait_status)
    {
        TryEvent event{TryEvent::Kind::ended, slot.taken().number, slot.taken().attempt,
                       m_clock.now(), m_plan.self.link};
        event.status = exit_code(wait_status);
        event.evidence = slot.evidence();
        event.end = event.evidence                              ? TryEnd::stopped_early
                    : slot.is_asked() && !m_leaving && !m_spent ? TryEnd::stopped
                    : is_pause(slot, event.status)              ? TryEnd::paused
                    : WIFSIGNALED(wait_status)                  ? TryEnd::crashed
                                                                : TryEnd::finished;
        slot.read_rest_of_log(m_store, layout::try_log(m_plan.sweep, event.number));
        slot.read_event_files(m_sweep.metric, loop_time());
        m_stopper.record(slot, m_clock.now(), m_plan.self.link);
        (void)m_store.remove(layout::try_leave(m_plan.sweep, event.number));
        event.values = slot.values(m_sweep.metric);
        print(slot.taken(), ending_text(event));
        m_ends.push_back(event);
    }

    /// A program that leaves with an error while its link ends has been interrupted. At any other
    /// time one that asks to be continued must have saved, or it could ask for ever.
    bool is_pause(const Slot& slot, int status) const
    {
        return m_leaving || m_spent || is_link_ending()
                   ? status != 0
                   : status == k_status_continue_me &&
                         m_programs.newest_checkpoint(slot.taken()) != slot.resumed_from();
    }

    bool is_link_ending() const { return ::access(m_plan.stop_file.c_str(), F_OK) == 0; }

    std::string ending_text(const TryEvent& event) const
    {
        const std::string value =
            event.values.best
                ? fmt::format(", best {} {:.6g}", name_of(m_sweep.metric), *event.values.best)
                : "";
        return event.end == TryEnd::finished
                   ? fmt::format("exit status {}{}{}", event.status,
                                 event.status == k_status_continue_me
                                     ? ", but it has saved no new checkpoint to continue from"
                                     : "",
                                 sanitised(value))
                   : fmt::format("{}{}", text_of(event.end), sanitised(value));
    }

    void end_without_program(const TryTaker::Taken& taken, TryEnd end, int status,
                             const std::string& reason)
    {
        TryEvent event = end_of(taken, end);
        event.status = status;
        m_ends.push_back(event);
        print(taken, fmt::format("{}: {}", text_of(end), sanitised(reason)));
    }

    void write_ends()
    {
        while (!m_ends.empty() && loop_time() >= m_retry_at) {
            if (const auto written = m_taker.record(m_ends.front()); !written) {
                complain(written.error());
                return;
            }
            m_ends.erase(m_ends.begin());
            m_failing_since.reset();
        }
    }

    void complain(const Error& error)
    {
        m_retry_at = loop_time() + k_retry;
        m_failing_since = m_failing_since.value_or(loop_time());
        if (error.text != m_complaint) {
            m_complaint = error.text;
            std::fprintf(stderr, "gpuq: %s; trying again\n", sanitised(error.text).c_str());
        }
    }

    void check_files()
    {
        m_leaving = m_leaving || is_link_ending();
        const bool all = m_store.size(layout::sweep_stop(m_plan.sweep)).has_value();
        if (m_sweep.gpu_time && loop_time() >= m_check_budget_at) {
            m_check_budget_at = loop_time() + k_between_budgets;
            check_budget();
        }
        for (const auto& slot : m_slots) {
            const std::size_t number = slot->taken().number;
            if (all || m_terminated || m_spent || slot->is_asked() ||
                slot->is_overdue(loop_time()) ||
                m_store.size(layout::try_stop(m_plan.sweep, number))) {
                slot->end(loop_time());
            }
            slot->read_log(m_store, layout::try_log(m_plan.sweep, number));
            slot->read_event_files(m_sweep.metric, loop_time());
            record_values(*slot);
            if (!slot->is_asked()) {
                stop_early(*slot);
            }
            if (m_leaving) {
                drop_stop_file(*slot);
            }
        }
    }

    /// Notifies a try that loses against others, as at the end of a link; it is ended if it does
    /// not leave.
    void stop_early(Slot& slot)
    {
        const auto evidence = m_stopper.evaluate(slot, m_clock.now(), m_plan.self.link);
        if (!evidence) {
            return;
        }
        print(slot.taken(), fmt::format("is stopped early at step {}: {} {:.6g}, limit {:.6g} ({} "
                                        "compared)",
                                        evidence->step, sanitised(name_of(m_sweep.metric)),
                                        evidence->value, evidence->threshold, evidence->compared));
        drop_stop_file(slot);
        const auto& chain = m_sweep.run.request.chain;
        const bool saves = notify(slot) > 0 || (chain && chain->aware) ||
                           m_programs.newest_checkpoint(slot.taken());
        slot.stop_early(*evidence, loop_time() + (saves ? k_time_to_save : k_time_to_notice));
    }

    /// Returns the number of processes that got the signal of the notice.
    std::size_t notify(const Slot& slot) const
    {
        std::vector<pid_t> others;
        for (const auto& other : m_slots) {
            if (other->pid() != slot.pid()) {
                others.push_back(other->pid());
            }
        }
        const auto& chain = m_sweep.run.request.chain;
        const Notice how = chain ? chain->notice : Notice::automatic;
        return m_plan.notify ? m_plan.notify(m_programs.run_id(slot.taken().number), others, how)
                             : 0;
    }

    /// Creates the GPUQ_STOP_FILE of a try, if it has one of its own.
    void drop_stop_file(Slot& slot)
    {
        if (m_sweep.stop_early && !slot.has_stop_file()) {
            const auto path = layout::try_leave(m_plan.sweep, slot.taken().number);
            slot.set_stop_file(m_store.write(path, "").has_value());
        }
    }

    /// For users who watch; a failure is of no consequence.
    void record_values(Slot& slot)
    {
        const sweeps::TryValues values = slot.values(m_sweep.metric);
        if (slot.is_news(values, loop_time())) {
            TryEvent event{TryEvent::Kind::reached, slot.taken().number, slot.taken().attempt,
                           m_clock.now(),           m_plan.self.link,    values};
            (void)m_taker.record(event);
        }
    }

    void take_signals()
    {
        signalfd_siginfo info{};
        while (::read(m_signals.get(), &info, sizeof info) == sizeof info) {
            const auto number = static_cast<int>(info.ssi_signo);
            if (number == SIGTERM || number == SIGINT || number == SIGHUP) {
                m_leaving = m_terminated = true;
            }
        }
    }

    void print(const TryTaker::Taken& taken, const std::string& text) const
    {
        std::printf("try %zu %s\n", taken.number, text.c_str());
        std::fflush(stdout);
    }

    Store& m_store;
    Clock& m_clock;
    const WorkerPlan& m_plan;
    sweeps::Sweep m_sweep;
    TryTaker m_taker;
    TryPrograms m_programs;
    EarlyStopper m_stopper;
    Proposer m_proposer;
    Grower m_grower;
    EventListing m_event_listing;
    Descriptor m_signals;
    EventLoop m_loop;
    EventLoop::Timer m_round;
    std::optional<telemetry::Pattern> m_pattern;
    std::vector<std::unique_ptr<Slot>> m_slots;
    std::vector<TryEvent> m_ends;               ///< not written yet
    std::optional<TryTaker::Taken> m_unstarted; ///< its files can't be created at the moment
    EventLoop::Moment m_retry_at;
    std::optional<EventLoop::Moment> m_failing_since;
    std::string m_complaint; ///< the last one printed
    EventLoop::Moment m_check_budget_at;
    bool m_spent = false;      ///< the sweep's GPU time: no more tries, and the running ones end
    bool m_leaving = false;    ///< no more tries: the link ends
    bool m_terminated = false; ///< the running ones end too
};

} // namespace

Result<int> work(Store& store, Clock& clock, Files& files, const WorkerPlan& plan)
{
    TRY_ASSIGN(const std::string text, store.read(layout::sweep_json(plan.sweep)));
    TRY_ASSIGN(sweeps::Sweep sweep, sweeps::sweep_from_json(text));
    return Worker(store, clock, files, plan, std::move(sweep)).run();
}

} // namespace gpuq::supervisor
