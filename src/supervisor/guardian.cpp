// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/exit_status.h"
#include "core/layout.h"
#include "io/signal_descriptor.h"
#include "supervisor/base/helper.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/chain/chain_work.h"
#include "supervisor/keeper/link_credentials.h"
#include "supervisor/supervise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// The guardian. In a later link of a chain it waits until the previous link has been judged. Then
// it claims the link, forks the supervisor and outlives it. Afterwards it removes tickets and
// TMPDIR; if the supervisor was killed, it also kills the remaining processes and records the loss.
// Slurm requests and removals run in helper processes with a time limit. The guardian never starts
// a thread, so both they and the supervisor may be forks of it.
namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_kill_patience = 10s;
/// Short, because a supervisor whose disk hangs never exits.
constexpr auto k_exit_patience = 1s;
/// For the helper that judges the previous link: allows for Slurm's timeouts and for a check by the
/// user.
constexpr std::chrono::milliseconds k_predecessor_patience = 700s;
constexpr auto k_predecessor_pause = 15s;
constexpr std::chrono::milliseconds k_conclude_patience = 60s;
constexpr std::chrono::milliseconds k_wipe_patience = 2s;

/// Ensures that a file opened later does not get the number of a standard stream.
void open_standard_streams()
{
    for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::dup(fd)) {
        if (fd > 2) {
            ::close(fd);
            return;
        }
    }
}

/// The streams belong to the supervisor: they must end when it ends.
void leave_standard_streams()
{
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(null, fd);
    }
    ::close(null);
}

/// Slurm signals all processes of a job; guardian and supervisor must outlive the program.
void block_signals()
{
    sigset_t all;
    sigfillset(&all);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
        sigdelset(&all, number);
    }
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

/// Passes TERM on until the supervisor says goodbye or has ended: where Slurm tracks the processes
/// of a job by cgroups, it signals this process only, the child of slurmstepd. Elsewhere the
/// supervisor gets TERM twice, which counts once.
void pass_term_on(pid_t supervisor, int goodbye)
{
    const Descriptor term = block_and_report({SIGTERM});
    std::array<pollfd, 2> ready{{{goodbye, POLLIN, 0}, {term.get(), POLLIN, 0}}};
    while (::poll(ready.data(), ready.size(), -1) < 0 || ready[0].revents == 0) {
        signalfd_siginfo signal{};
        if (::read(term.get(), &signal, sizeof signal) == sizeof signal) {
            ::kill(supervisor, SIGTERM);
        }
    }
}

/// The supervisor's exit status; nullopt if it was killed.
std::optional<int> goodbye_of(pid_t supervisor, int goodbye)
{
    pass_term_on(supervisor, goodbye);
    int status = 0;
    ssize_t size = 0;
    while ((size = ::read(goodbye, &status, sizeof status)) < 0 && errno == EINTR) {
    }
    const auto until = std::chrono::steady_clock::now() + k_exit_patience;
    while (::waitpid(supervisor, nullptr, WNOHANG) == 0 &&
           std::chrono::steady_clock::now() < until) {
        ::poll(nullptr, 0, 1);
    }
    return size == sizeof status ? std::optional(status) : std::nullopt;
}

/// The end of the run, if the journal already contains it.
std::optional<Event> journaled_end(int directory)
{
    const auto text = read_file(directory, "journal.jsonl");
    const std::vector<Event> events = text ? parse_journal(*text) : std::vector<Event>{};
    const auto ended = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
        return event.kind == Event::Kind::ended && event.status;
    });
    return ended == events.rend() ? std::nullopt : std::optional(*ended);
}

/// The helper's complete answer, or the part that arrives within `patience`.
std::string answer_of(Helper& helper, std::chrono::milliseconds patience)
{
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd wait{helper.answer(), POLLIN, 0};
        const int ready = ::poll(&wait, 1, static_cast<int>(std::max(left, 0ms).count()));
        if ((ready > 0 && helper.read_more()) || left <= 0ms) {
            return helper.finish();
        }
    }
}

/// True if the run continues after the loss of its supervisor: a chain does, in its next link.
bool conclude_after_loss(Services& services, const Options& options, const RunDirectory& directory,
                         Event& ended)
{
    const auto run = directory.read_run();
    if (!run || !run->request.chain) {
        return false;
    }
    const auto link = directory.link(options.link);
    const auto text =
        link ? read_file(link->get(), "journal.jsonl") : Result<std::string>(link.error());
    LinkPast self = link_past(options.link, text ? parse_journal(*text) : std::vector<Event>{});
    self.ending = Ending{*ended.status, *ended.cause, *ended.detail, ended.at};
    auto helper = Helper::fork(
        [&] { return encoded(conclude(services, options, self, {}, /*by_itself=*/false)); });
    const auto outcome =
        helper ? decoded<LinkOutcome>(answer_of(*helper, k_conclude_patience)) : std::nullopt;
    if (outcome && outcome->verdict.decision == Verdict::Decision::over &&
        outcome->verdict.ending) {
        ended.status = outcome->verdict.ending->status;
        ended.cause = outcome->verdict.ending->cause;
        ended.detail = outcome->verdict.ending->detail;
        return false;
    }
    return true; // in doubt the next link judges
}

Event journal_the_loss(Services& services, const Options& options)
{
    const auto run = RunDirectory::open(options.state_dir, options.key);
    LinkFiles files;
    if (auto directory = run ? run->link(options.link) : Result<Descriptor>(run.error())) {
        files.directory = *std::move(directory);
    }
    if (auto journaled = journaled_end(files.directory.get())) {
        return *std::move(journaled);
    }
    files.open();
    Event ended;
    ended.kind = Event::Kind::ended;
    ended.at = services.clock.now();
    ended.status = static_cast<int>(ExitStatus::lost);
    ended.cause = Cause::lost;
    ended.detail = "the supervisor of the run was killed";
    ended.continues = run && conclude_after_loss(services, options, *run, ended);
    JournalFile journal;
    journal.use(files.journal.get());
    journal.append(ended);
    ::fsync(files.journal.get());
    return ended;
}

int clean_up_after_a_killed_supervisor(Services& services, const Options& options)
{
    kill_descendants(k_kill_patience);
    const Event ended = journal_the_loss(services, options);
    if (ended.continues) {
        return static_cast<int>(ExitStatus::success);
    }
    if (auto helper = Helper::fork([&]() -> std::string {
            withdraw_next(services, options);
            return "";
        })) {
        (void)answer_of(*helper, k_conclude_patience);
    }
    return *ended.status;
}

/// True if the journal contains the end of the run, however the supervisor ended.
bool run_is_over(const Options& options)
{
    const auto run = RunDirectory::open(options.state_dir, options.key);
    const auto link = run ? run->link(options.link) : Result<Descriptor>(run.error());
    const auto ended = link ? journaled_end(link->get()) : std::nullopt;
    return ended && !ended->continues;
}

/// Called when the link has ended, for any reason: removes its tickets, and also those kept
/// for a next link if there is none.
void wipe_tickets(Services& services, const Options& options)
{
    if (services.secrets == nullptr || !has_node_credentials(options)) {
        return;
    }
    // The run's store may be on a hanging disk.
    if (auto helper = Helper::fork([&]() -> std::string {
            wipe_credentials(*services.secrets, options, run_is_over(options));
            return "done";
        })) {
        (void)answer_of(*helper, k_wipe_patience);
    }
}

/// Enough for a directory with a hundred thousand files; the job keeps its GPUs meanwhile.
constexpr std::chrono::milliseconds k_tmp_patience = 10s;

/// In a helper process, because a disk may hang.
void remove_put_back(const Services& services)
{
    if (!services.remove_put_back) {
        return;
    }
    if (auto helper = Helper::fork([&]() -> std::string {
            services.remove_put_back();
            return "done";
        })) {
        (void)answer_of(*helper, k_tmp_patience);
    }
}

/// In a helper process, because a disk may hang.
void remove_tmp(Services& services, const LinkTmp& tmp)
{
    if (auto helper = Helper::fork([&]() -> std::string {
            tmp.remove(services.remove_tree);
            return "done";
        })) {
        (void)answer_of(*helper, k_tmp_patience);
    }
}

/// A later link starts once the outcome of the previous one is known. Nullopt: there is nothing to
/// do, or this process got TERM while waiting.
std::optional<LinkStart> wait_for_link_start(Services& services, const Options& options)
{
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    auto pause = 1s;
    while (true) {
        auto helper = Helper::fork([&] { return encoded(check_predecessor(services, options)); });
        std::optional<PredecessorCheck> predecessor;
        if (helper) {
            predecessor = decoded<PredecessorCheck>(answer_of(*helper, k_predecessor_patience));
        }
        if (predecessor && predecessor->leave) {
            return std::nullopt;
        }
        if (predecessor && predecessor->link_start) {
            return std::move(predecessor->link_start);
        }
        const timespec time{std::chrono::seconds(pause).count(), 0};
        if (::sigtimedwait(&term, nullptr, &time) == SIGTERM) {
            return std::nullopt;
        }
        pause = std::min<std::chrono::seconds>(pause * 2, k_predecessor_pause);
    }
}

/// True if another job runs this link: two jobs exist because the answer to a request to Slurm was
/// lost. A directory that cannot be written does not stop the job, which is almost always the only
/// one.
bool is_claimed_by_another(const Options& options)
{
    const auto run = RunDirectory::open(options.state_dir, options.key);
    const auto ours =
        run && options.job ? run->claim(options.link, *options.job) : Result<bool>(true);
    return ours && !*ours;
}

} // namespace

int supervise(Services& services, const Options& options)
{
    const pid_t slurmstepd = ::getppid();
    open_standard_streams();
    block_signals();
    std::optional<LinkStart> link_start;
    if (options.link > LinkNumber{1}) {
        link_start = wait_for_link_start(services, options);
        if (!link_start) {
            return static_cast<int>(ExitStatus::success);
        }
    }
    if (is_claimed_by_another(options)) {
        const int nothing_done = static_cast<int>(ExitStatus::success);
        if (options.first) {
            complete_for_ever(completion_by_fork(services, *options.job, nothing_done));
        }
        return nothing_done;
    }
    become_subreaper();
    const auto tmp = services.remove_tree
                         ? LinkTmp::make()
                         : Result<LinkTmp>(fail(Error::Kind::missing, "not requested"));
    Options with_tmp = options;
    with_tmp.tmp = tmp ? tmp->path() : "";
    auto goodbye = make_pipe();
    auto alive = make_pipe();
    const pid_t supervisor = goodbye && alive ? ::fork() : -1;
    if (supervisor == 0) {
        goodbye->read.reset();
        alive->write.reset();
        start_log(options, "supervisor");
        run_program(services, with_tmp, link_start, goodbye->write.get(), alive->read.get());
    }
    int status = static_cast<int>(ExitStatus::internal);
    if (supervisor > 0) {
        goodbye->write.reset();
        alive->read.reset();
        leave_standard_streams();
        if (services.sweep) {
            services.sweep(); // runs in parallel with the supervisor, which starts the program
                              // meanwhile
        }
        const auto left_with = goodbye_of(supervisor, goodbye->read.get());
        status = left_with ? *left_with : clean_up_after_a_killed_supervisor(services, options);
        wipe_tickets(services, options);
        remove_put_back(services);
        if (tmp) {
            remove_tmp(services, *tmp);
        }
    } else {
        write_all(STDERR_FILENO, "gpuq: can't start the supervisor's process on this node\n");
    }
    // slurmstepd reports the status of a batch script. If slurmstepd was killed, or if this is the
    // first step of an allocation, the status must be reported here.
    const bool has_no_reporter = options.first || ::getppid() != slurmstepd;
    if (has_no_reporter && options.job) {
        complete_for_ever(completion_by_fork(services, *options.job, status));
    }
    return status;
}

} // namespace gpuq::supervisor
