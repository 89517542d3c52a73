// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/app.h"

#include "core/exit_status.h"
#include "io/descriptor.h"
#include "io/event_loop.h"
#include "tui/mailbox.h"
#include "tui/terminal.h"
#include "tui/update.h"
#include "tui/view.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

// One process. The screen's thread (Screen) handles keys and draws; only it uses the model and the
// terminal. Six workers each call one of the Sources, which may block in a file system or in Slurm,
// and post the result as a message; an eventfd wakes the screen's thread.
//
// Workers and screen share only Shared, under its mutex. The next task of a worker is state
// there (the open log, the runs in detail, the newest comparison, attempt and completion), not a
// queue, so that a slow worker does not fall behind; only commands are queued, since each must be
// executed once. Nor do their results pile up for a screen that is slow, such as one whose terminal
// does not read: a newer result replaces an older one (mailbox.h).
//
// A round of the screen: draw, wait for a key, a message or the next second, and then update the
// model: the time first, since the other updates compare with it, then keys, which reply to the
// screen as drawn, then messages. While a command has the terminal, a thread of its own takes the
// messages, for notices at their time, and the workers read no details and no log.
//
// A worker that still hangs at the end is not waited for: the process then exits without destroying
// the objects that it uses.

namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;

constexpr auto k_query_again = 2s;
/// Reading 10,000 runs takes a while: the pause is this many times as long, up to k_query_at_least.
constexpr int k_rest_of_list = 25;
/// The same for the processor time that this takes, so that an idle screen needs little.
constexpr int k_rest_of_processor = 100;
constexpr auto k_query_at_least = 15s;
constexpr auto k_refresh_detail = 5s;
/// Loading the details of a large training takes a while: the pause is this many times as long.
constexpr int k_rest = 200;
constexpr auto k_refresh_others = 30s;
constexpr auto k_refresh_ended = 10min; // it may have been resumed elsewhere
/// Pause between two runs of the list, in multiples of the time that the last one took.
constexpr int k_rest_between = 4;
constexpr std::chrono::milliseconds k_check_again = 1s;
constexpr std::chrono::milliseconds k_read_again = 250ms;
constexpr std::chrono::milliseconds k_nothing_to_do = 1h;
constexpr auto k_ask_again = 2s;
/// The user has paused typing.
constexpr auto k_typed = 400ms;
/// A worker that hangs in a file system or in Slurm is waited for no longer.
constexpr auto k_patience = 200ms;

/// Shared by the workers and the screen's thread. Lives as long as any of them.
struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Message> messages;
    bool leaving = false;
    Anew asked = Anew::no; ///< the user wants Slurm queried
    bool wanted = false;   ///< the disk should be read at once
    std::optional<OpenLog> log;
    std::vector<std::string> in_detail; ///< keys of the runs in detail, the selected one first
    std::optional<Compare> compare;     ///< while it is shown
    bool compare_unread = false;        ///< it has just been opened
    bool log_unread = false;            ///< some of its bytes are still among the messages
    bool lent = false;                  ///< another program has the terminal
    int log_number = 0;                 ///< number of logs opened so far
    std::deque<Command> commands;
    std::optional<Try> attempt;         ///< the newest one, until it is tried
    std::optional<Complete> completion; ///< the same
    int working = 0;                    ///< number of running workers
    Descriptor wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    void post(Message message)
    {
        {
            const std::lock_guard lock(mutex);
            add_newest(messages, std::move(message));
        }
        wake_up();
    }
    void wake_up() const
    {
        const std::uint64_t one = 1;
        (void)!::write(wake.get(), &one, sizeof one);
    }
    bool wants_comparison(std::chrono::steady_clock::time_point due) const
    {
        return compare && !lent && (compare_unread || std::chrono::steady_clock::now() >= due);
    }
    /// The runs whose details are to be read: none while they are not visible.
    const std::vector<std::string>& wanted_details() const
    {
        static const std::vector<std::string> k_none;
        return lent ? k_none : in_detail;
    }
    std::deque<Message> take()
    {
        std::uint64_t count = 0;
        (void)!::read(wake.get(), &count, sizeof count);
        const std::lock_guard lock(mutex);
        return std::exchange(messages, {});
    }
};

using Pointer = std::shared_ptr<Shared>;

/// Signals are for the screen's thread: no handler runs in a worker.
void begin_worker(const Pointer& shared, std::function<void(Shared&)> work)
{
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    {
        const std::lock_guard lock(shared->mutex);
        ++shared->working;
    }
    std::thread([shared, work = std::move(work)] {
        work(*shared);
        const std::lock_guard lock(shared->mutex);
        --shared->working;
        shared->changed.notify_all();
    }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Waits for `time`, or until `ready`. False if the view is about to close.
template <typename Ready>
bool rest(Shared& shared, std::chrono::milliseconds time, const Ready& ready)
{
    std::unique_lock lock(shared.mutex);
    shared.changed.wait_for(lock, time, [&] { return shared.leaving || ready(); });
    return !shared.leaving;
}

/// Of this thread.
std::chrono::nanoseconds processor_time()
{
    timespec time{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void refresh_picture(Shared& shared, const Sources& sources)
{
    std::chrono::milliseconds pause = k_query_again;
    do {
        {
            const std::lock_guard lock(shared.mutex);
            shared.wanted = false;
        }
        const auto begin = std::chrono::steady_clock::now();
        const auto used = processor_time();
        shared.post(PictureRead{sources.read_picture()});
        const auto took = std::chrono::steady_clock::now() - begin;
        pause = std::clamp<std::chrono::milliseconds>(
            std::chrono::floor<std::chrono::milliseconds>(std::max<std::chrono::nanoseconds>(
                k_rest_of_list * took, k_rest_of_processor * (processor_time() - used))),
            k_query_again, k_query_at_least);
    } while (rest(shared, pause, [&] { return shared.wanted; }));
}

using Steady = std::chrono::steady_clock;

/// When to read the details of runs again, at the earliest; by key.
using NextReadings = std::map<std::string, Steady::time_point>;

/// The run to read next: the selected one if it is due, else one of the others; nothing if none is.
std::optional<std::string> due_run(const std::vector<std::string>& wanted,
                                   const NextReadings& known)
{
    const auto now = Steady::now();
    for (const std::string& key : wanted) {
        const auto found = known.find(key);
        if (found == known.end() || found->second <= now) {
            return key;
        }
    }
    return std::nullopt;
}

/// A try of a sweep: its log is short, and it may end soon.
bool is_try(const Detail& detail)
{
    return detail.key.find('/') != std::string::npos;
}

/// Pause before the details of a run are read again: the longer, the longer that took.
Steady::duration pause_after(const Detail& detail, bool is_selected, Steady::duration took)
{
    const Steady::duration least = detail.ended && !is_selected ? Steady::duration(k_refresh_ended)
                                   : is_selected || is_try(detail)
                                       ? Steady::duration(k_refresh_detail)
                                       : Steady::duration(k_refresh_others);
    return std::max<Steady::duration>(least, k_rest * took);
}

/// The selected run at once when it becomes selected, then every few seconds; the others in the
/// list once, then rarely.
void refresh_detail(Shared& shared, const Sources& sources)
{
    NextReadings known;
    std::vector<std::string> wanted;
    std::string selected;
    Steady::time_point compare_again;
    do {
        std::optional<Compare> compare;
        {
            const std::lock_guard lock(shared.mutex);
            wanted = shared.wanted_details();
            if (shared.wants_comparison(compare_again)) {
                compare = shared.compare;
                shared.compare_unread = false;
            }
        }
        if (compare) {
            const auto begin = Steady::now();
            shared.post(ComparisonRead{sources.compare(compare->keys)});
            const auto took = Steady::now() - begin;
            compare_again =
                Steady::now() + std::max<Steady::duration>(k_refresh_detail, k_rest * took);
        }
        if (wanted.empty() || wanted.front() != selected) {
            selected = wanted.empty() ? "" : wanted.front();
            known.erase(selected); // the list keeps only a part of its details
        }
        std::erase_if(known, [&](const auto& one) {
            return std::find(wanted.begin(), wanted.end(), one.first) == wanted.end();
        });
        const auto key = due_run(wanted, known);
        if (!key) {
            continue;
        }
        const bool is_selected = *key == selected;
        const auto begin = Steady::now();
        Detail detail = sources.read_detail(*key, is_selected ? Depth::all : Depth::list);
        const auto took = Steady::now() - begin;
        known[*key] = Steady::now() + pause_after(detail, is_selected, took);
        shared.post(DetailRead{std::move(detail)});
        if (!is_selected) {
            // Fills the list without occupying a core or the file system.
            const auto pause = std::chrono::ceil<std::chrono::milliseconds>(k_rest_between * took);
            if (!rest(shared, pause, [&] {
                    return shared.wants_comparison(compare_again) ||
                           shared.wanted_details() != wanted;
                })) {
                return;
            }
        }
    } while (rest(shared, k_check_again, [&] {
        return shared.wants_comparison(compare_again) || shared.wanted_details() != wanted ||
               due_run(shared.wanted_details(), known).has_value();
    }));
}

void refresh_from_slurm(Shared& shared, const Sources& sources)
{
    Anew anew = Anew::no;
    bool is_first = true;
    do {
        sources.ask(anew);
        if (std::exchange(is_first, false) || anew != Anew::no) { // shows the response at once
            {
                const std::lock_guard lock(shared.mutex);
                shared.wanted = true;
            }
            shared.changed.notify_all();
        }
    } while (rest(shared, k_ask_again, [&] { return shared.asked != Anew::no; }) &&
             (anew = std::exchange(shared.asked, Anew::no), true));
}

void read_again_and_again(Shared& shared, const Sources& sources)
{
    int number = 0;
    std::optional<OpenLog> log;
    do {
        bool begin = false, lent = false;
        {
            const std::lock_guard lock(shared.mutex);
            log = shared.log;
            lent = shared.lent;
            begin = !lent && std::exchange(number, shared.log_number) != number;
        }
        if (log && !lent) {
            if (auto bytes = sources.read(*log, begin)) {
                {
                    const std::lock_guard lock(shared.mutex);
                    shared.log_unread = true;
                }
                shared.post(*std::move(bytes));
                // A log that grows faster than it can be shown must not accumulate.
                if (!rest(shared, k_nothing_to_do, [&] { return !shared.log_unread; })) {
                    return;
                }
            }
        }
    } while (rest(shared, log ? k_read_again : k_nothing_to_do,
                  [&] { return !shared.lent && shared.log_number != number; }));
}

void work_off_commands(Shared& shared, const Sources& sources)
{
    while (rest(shared, k_nothing_to_do, [&] { return !shared.commands.empty(); })) {
        std::optional<Command> command;
        {
            const std::lock_guard lock(shared.mutex);
            if (!shared.commands.empty()) {
                command = std::move(shared.commands.front());
                shared.commands.pop_front();
            }
        }
        if (command) {
            Done done = sources.command(*command);
            done.arguments = command->arguments;
            shared.post(std::move(done));
        }
    }
}

void try_again_and_again(Shared& shared, const Sources& sources)
{
    const auto is_due = [&] { return shared.attempt || shared.completion; };
    while (rest(shared, k_nothing_to_do, is_due)) {
        std::optional<Complete> completion;
        std::optional<Try> attempt;
        do {
            const std::lock_guard lock(shared.mutex);
            completion = std::exchange(shared.completion, std::nullopt);
            if (shared.attempt) { // else the one of the round before is still due
                attempt = std::exchange(shared.attempt, std::nullopt);
            }
        } while (!completion && rest(shared, k_typed, is_due) &&
                 (shared.attempt || shared.completion));
        if (completion) {
            shared.post(Completed{completion->arguments, sources.complete(completion->arguments)});
        }
        if (attempt) {
            shared.post(Tried{attempt->arguments, sources.try_out(*attempt)});
        }
    }
}

/// The screen's thread.
class Screen {
public:
    Screen(Terminal& terminal, const Sources& sources, Pointer shared)
        : m_terminal(terminal)
        , m_sources(sources)
        , m_shared(std::move(shared))
    {
        m_model.theme = terminal.theme();
        m_model.size = terminal.size();
        m_model.now = sources.now();
        m_model.commands.verbs = sources.verbs;
        m_loop.add([] { return EventLoop::to_read(STDIN_FILENO); },
                   [this](short ready) {
                       // The terminal is gone.
                       m_leaving = m_leaving || (ready & (POLLHUP | POLLERR | POLLNVAL)) != 0;
                   });
        m_loop.add([this] { return EventLoop::to_read(m_shared->wake.get()); }, [] {});
    }

    void run()
    {
        while (!m_leaving) {
            m_terminal.show(view(m_model));
            m_loop.run_once(1s - m_sources.now().time_since_epoch() % 1s);
            take(Tick{m_sources.now()});
            while (auto key = m_terminal.next()) {
                const bool was_asked = m_model.question.has_value();
                take(*std::move(key));
                if (m_model.question && !was_asked) {
                    drop_keys(); // they are no answers to a question that has not been shown
                }
            }
            take_messages();
        }
    }

private:
    void take_messages()
    {
        bool has_read = false;
        for (Message& message : m_shared->take()) {
            has_read = has_read || std::holds_alternative<LogBytes>(message);
            take(std::move(message));
        }
        // Only if necessary: each change wakes every worker.
        if (has_read) {
            notify([](Shared& shared) { shared.log_unread = false; });
        }
        if (std::vector<std::string> shown = runs_in_detail(m_model); shown != m_in_detail) {
            m_in_detail = std::move(shown);
            notify([this](Shared& shared) { shared.in_detail = m_in_detail; });
        }
    }

    /// A change of size may be among them.
    void drop_keys()
    {
        m_terminal.drop_keys();
        const Resized size = m_terminal.size();
        if (size.rows != m_model.size.rows || size.columns != m_model.size.columns) {
            m_terminal.redraw();
            take(size);
        }
    }

    void take(Message message)
    {
        for (Effect& effect : update(m_model, std::move(message))) {
            std::visit([this](auto& each) { perform(each); }, effect);
        }
        if (m_compares && !m_model.comparison) {
            m_compares = false;
            notify([](Shared& shared) { shared.compare.reset(); });
        }
    }

    void perform(Quit&) { m_leaving = true; }
    void perform(Redraw&) { m_terminal.redraw(); }
    void perform(Copy& copy) { m_terminal.copy(copy.text); }
    void perform(Refresh& refresh)
    {
        notify([&](Shared& shared) {
            shared.asked = std::max(shared.asked, refresh.anew);
            shared.wanted = true;
        });
    }
    void perform(OpenLog& log)
    {
        notify([&](Shared& shared) {
            shared.log = log;
            ++shared.log_number;
        });
    }
    void perform(CloseLog&)
    {
        notify([](Shared& shared) { shared.log.reset(); });
    }
    void perform(Try& attempt)
    {
        notify([&](Shared& shared) { shared.attempt = std::move(attempt); });
    }
    void perform(Complete& completion)
    {
        notify([&](Shared& shared) { shared.completion = std::move(completion); });
    }
    void perform(Compare& compare)
    {
        m_compares = true;
        notify([&](Shared& shared) {
            shared.compare = std::move(compare);
            shared.compare_unread = true;
        });
    }
    void perform(Notify& event)
    {
        if (!m_lent) { // the bell would be that of the other program
            m_terminal.notify(event.text);
        }
        m_sources.notify(event);
    }
    void perform(Command& command)
    {
        if (!command.on_terminal) {
            return notify([&](Shared& shared) { shared.commands.push_back(std::move(command)); });
        }
        m_terminal.leave();
        const Time begin = m_sources.now();
        Done done = while_lent([&] { return m_sources.command(command); });
        done.arguments = command.arguments;
        for (Toast& toast : m_model.toasts) {
            toast.until += m_sources.now() - begin; // not seen yet
        }
        m_terminal.enter();
        drop_keys();
        take(std::move(done));
    }

    /// Executes `work`, which blocks while another program has the terminal. Events of runs are
    /// noticed in the meantime, on a thread that has the model to itself; nothing is drawn.
    template <typename Work>
    Done while_lent(const Work& work)
    {
        notify([this](Shared& shared) { shared.lent = m_lent = true; });
        std::atomic<bool> has_ended = false;
        sigset_t all, before;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread notices([&] {
            while (!has_ended) {
                pollfd woken{m_shared->wake.get(), POLLIN, 0};
                (void)::poll(&woken, 1, -1);
                take_messages();
            }
        });
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        Done done = work();
        has_ended = true;
        m_shared->wake_up();
        notices.join();
        notify([this](Shared& shared) { shared.lent = m_lent = false; });
        return done;
    }

    template <typename Change>
    void notify(const Change& change)
    {
        {
            const std::lock_guard lock(m_shared->mutex);
            change(*m_shared);
        }
        m_shared->changed.notify_all();
    }

    Terminal& m_terminal;
    const Sources& m_sources;
    Pointer m_shared;
    EventLoop m_loop;
    Model m_model;
    std::vector<std::string> m_in_detail;
    bool m_leaving = false;
    bool m_lent = false;     ///< another program has the terminal
    bool m_compares = false; ///< a comparison is shown, or has just been closed
};

} // namespace

Result<void> run(Sources sources, Colours colours)
{
    TRY_ASSIGN(auto terminal, Terminal::open(colours));
    const auto shared = std::make_shared<Shared>();
    const auto kept = std::make_shared<Sources>(std::move(sources));
    for (const auto& work : {refresh_picture, refresh_detail, refresh_from_slurm,
                             read_again_and_again, work_off_commands, try_again_and_again}) {
        begin_worker(shared, [kept, work](Shared& all) { work(all, *kept); });
    }
    Screen(*terminal, *kept, shared).run();
    std::unique_lock lock(shared->mutex);
    shared->leaving = true;
    shared->changed.notify_all();
    const bool all_left =
        shared->changed.wait_for(lock, k_patience, [&] { return shared->working == 0; });
    if (!all_left) { // one hangs in Slurm or in a file system, and would outlive the objects it
                     // uses
        terminal.reset();
        ::_exit(static_cast<int>(ExitStatus::success));
    }
    return {};
}

} // namespace gpuq::tui
