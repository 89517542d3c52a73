// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/log_writer.h"

#include "log/log.h"
#include "runs/idle.h"
#include "runs/records/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_tick = 1s;
/// Delay until a non-urgent event is synced: short runs do not wait for a sync.
constexpr auto k_sync_delay = 50ms;
constexpr int k_chunks_at_once = 16;
constexpr std::size_t k_history_piece = 256 << 10;
constexpr std::size_t k_reserve = 32 << 10;
constexpr const char* k_reserve_name = "reserve";
constexpr const char* k_stop_file = "stop";         // layout::stop_file
constexpr const char* k_extended_file = "extended"; // layout::extended_file
constexpr const char* k_deadline_file = "deadline"; // layout::deadline_file
constexpr std::uint64_t k_room_again = 1 << 20;
constexpr std::size_t k_max_pending_events = 256;

/// On these file systems written bytes are visible to all readers at once; on others (NFS) only
/// synced ones are.
bool is_local(int file)
{
    constexpr long k_xfs = 0x58465342;
    constexpr long k_zfs = 0x2fc12fc1;
    struct statfs status {};
    if (::fstatfs(file, &status) != 0) {
        return false;
    }
    const long type = status.f_type;
    return type == EXT4_SUPER_MAGIC || type == TMPFS_MAGIC || type == BTRFS_SUPER_MAGIC ||
           type == OVERLAYFS_SUPER_MAGIC || type == k_xfs || type == k_zfs;
}

} // namespace

LogWriter::LogWriter(Setup setup, Backlog& backlog, Clock& clock, int wake)
    : m_setup(std::move(setup))
    , m_backlog(backlog)
    , m_clock(clock)
    , m_wake(wake)
{
    m_journal.use(m_setup.files.journal.get());
}

LogWriter::~LogWriter()
{
    if (m_thread.joinable()) {
        change([](LogWriter& self) { self.m_work.stop = true; });
        m_thread.join();
    }
}

void LogWriter::start()
{
    m_thread = std::thread([this] { run(); });
}

std::optional<std::string> LogWriter::stop_request_now() const
{
    return m_setup.directory ? m_setup.directory->stop_request() : std::nullopt;
}

template <typename Change>
void LogWriter::change(Change change)
{
    {
        const std::lock_guard lock(m_mutex);
        change(*this);
    }
    m_condition.notify_one();
}

void LogWriter::poke()
{
    change([](LogWriter&) {});
}

void LogWriter::record(Event event, Urgency urgency)
{
    change([&](LogWriter& self) {
        self.m_work.events.push_back(std::move(event));
        self.m_work.sync = self.m_work.sync || urgency == Urgency::now;
    });
}

void LogWriter::request_history(int asker, const Bookmark& bookmark, const Position& end)
{
    change([&](LogWriter& self) { self.m_questions.push_back({asker, bookmark, end}); });
}

void LogWriter::check_stop()
{
    change([](LogWriter& self) { self.m_work.check_requests = true; });
}

void LogWriter::drop_stop_file()
{
    change([](LogWriter& self) { self.m_work.stop_file = true; });
}

void LogWriter::write_deadline(std::string text)
{
    change([&](LogWriter& self) { self.m_work.deadline = std::move(text); });
}

void LogWriter::write_idle(std::string text)
{
    change([&](LogWriter& self) { self.m_work.idle = std::move(text); });
}

void LogWriter::request_rank_notes()
{
    change([](LogWriter& self) { self.m_work.rank_notes = true; });
}

void LogWriter::request_release(std::string name, int most)
{
    change([&](LogWriter& self) { self.m_work.release.emplace(std::move(name), most); });
}

void LogWriter::finish(Event ended)
{
    change([&](LogWriter& self) { self.m_work.ended = std::move(ended); });
}

LogWriter::News LogWriter::take_news()
{
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_news, News{});
}

void LogWriter::report(News news)
{
    {
        const std::lock_guard lock(m_mutex);
        if (news.stop_request) {
            m_news.stop_request = std::move(news.stop_request);
        }
        std::move(news.notes.begin(), news.notes.end(), std::back_inserter(m_news.notes));
        std::move(news.answers.begin(), news.answers.end(), std::back_inserter(m_news.answers));
        if (news.save_request) {
            m_news.save_request = std::move(news.save_request);
        }
        if (news.rehearsal_request) {
            m_news.rehearsal_request = std::move(news.rehearsal_request);
        }
        if (news.exemption) {
            m_news.exemption = std::move(news.exemption);
        }
        if (news.extension) {
            m_news.extension = std::move(news.extension);
        }
        if (news.rank_notes) {
            m_news.rank_notes = std::move(news.rank_notes);
        }
        if (news.may_release) {
            m_news.may_release = news.may_release;
        }
        m_news.fenced = m_news.fenced || news.fenced;
        m_news.checked = m_news.checked || news.checked;
        m_news.written = m_news.written || news.written;
        m_news.recorded = m_news.recorded || news.recorded;
        m_news.synced = m_news.synced || news.synced;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t woken = ::write(m_wake, &one, sizeof one);
}

// ---- the thread ----

void LogWriter::run()
{
    make_reserve();
    while (true) {
        Work work = wait_for_work();
        if (work.stop) {
            return;
        }
        do_work(work);
    }
}

LogWriter::Work LogWriter::wait_for_work()
{
    std::unique_lock lock(m_mutex);
    const auto until = m_sync_due ? std::min(m_next_tick, *m_sync_due) : m_next_tick;
    m_condition.wait_until(lock, until, [this] {
        return !m_work.events.empty() || !m_questions.empty() || m_work.ended ||
               m_work.check_requests || m_work.stop_file || m_work.deadline || m_work.idle ||
               m_work.release || m_work.rank_notes || m_work.stop || m_backlog.to_log();
    });
    Work work = std::exchange(m_work, Work{});
    if (!m_questions.empty()) {
        work.question = m_questions.front();
        m_questions.pop_front();
    }
    return work;
}

void LogWriter::do_work(Work& work)
{
    for (const Event& event : work.events) {
        journal(event);
    }
    const auto now = m_clock.steady();
    if (!work.events.empty() && !m_sync_due) {
        m_sync_due = now + k_sync_delay;
    }
    if (work.stop_file) {
        make_stop_file();
    }
    if (work.deadline) {
        replace(k_deadline_file, *work.deadline);
    }
    if (work.idle) {
        replace(k_idle_finding, *work.idle);
    }
    if (work.release) {
        report({.may_release = m_setup.directory &&
                               m_setup.directory->take_release(
                                   work.release->first, work.release->second, m_clock.now())});
    }
    if (work.rank_notes) {
        report({.rank_notes = read_rank_notes(m_setup.files.directory.get())});
    }
    if (work.check_requests) {
        check_requests();
        report({.checked = true});
    }
    if (work.sync || (m_sync_due && now >= *m_sync_due)) {
        m_sync_due.reset();
        ::fdatasync(m_setup.files.journal.get());
    }
    if (now >= m_next_tick) {
        tick();
    }
    if (work.question) {
        answer(*work.question);
    }
    if (write_chunks() && m_report_space.exchange(false)) {
        report({});
    }
    if (m_times.is_due(now)) {
        note_time();
    }
    if (work.ended) {
        while (write_chunks()) {
        }
        note_time();
        write_end(*work.ended);
    }
}

bool LogWriter::write_chunks()
{
    int done = 0;
    for (; done < k_chunks_at_once; ++done) {
        const Chunk* chunk = m_backlog.to_log();
        if (!chunk) {
            break;
        }
        m_backlog.logged(/*lost=*/!write_chunk(*chunk));
    }
    return done > 0;
}

bool LogWriter::write_chunk(const Chunk& chunk)
{
    const std::size_t index = index_of(chunk.stream);
    m_order.add(chunk.stream, chunk.bytes.size(), order());
    m_written[index] = chunk.end();
    if (!may_write()) {
        lose(chunk, 0, 0);
        return false;
    }
    std::size_t done = 0;
    while (done < chunk.bytes.size()) {
        const ssize_t written =
            ::pwrite(m_setup.files.logs[index].get(), chunk.bytes.data() + done,
                     chunk.bytes.size() - done, static_cast<off_t>(chunk.offset + done));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            lose(chunk, done, written < 0 ? errno : EIO);
            return false;
        }
        done += static_cast<std::size_t>(written);
    }
    return true;
}

void LogWriter::lose(const Chunk& chunk, std::size_t from, int error)
{
    const std::size_t index = index_of(chunk.stream);
    auto& [all, unreported] = m_lost[index];
    all.add(chunk.offset + from, chunk.end());
    unreported = {unreported ? unreported->first : chunk.offset + from, chunk.end()};
    m_next_try = m_broken ? m_next_try : m_clock.steady() + m_setup.retry;
    if (!m_broken) {
        m_broken = true;
        log::warning(log::Part::supervisor, "the program's log can't be written: {}",
                     error_text(error));
        report({.notes = {fmt::format("the log of this run can't be written ({}); the program "
                                      "continues, its output is shown but not kept",
                                      error_text(error))}});
    }
}

/// False while the log is known to be broken. Recovers when there is free space again.
bool LogWriter::may_write()
{
    if (!m_broken && m_setup.files.all_open()) {
        return true;
    }
    if (!m_broken) {
        m_next_try = m_clock.steady() + m_setup.retry;
        m_broken = true;
        report({.notes = {"the log of this run can't be written; the program continues, its output "
                          "is shown but not kept"}});
        return false;
    }
    if (m_clock.steady() < m_next_try) {
        return false;
    }
    m_next_try = m_clock.steady() + m_setup.retry;
    struct statvfs space {};
    if (!m_setup.files.open() || ::fstatvfs(m_setup.files.directory.get(), &space) != 0 ||
        space.f_bavail * space.f_frsize < k_room_again || (space.f_flag & ST_RDONLY) != 0) {
        return false;
    }
    m_broken = false;
    m_journal.use(m_setup.files.journal.get());
    make_reserve();
    // The journal must report the gap before the first byte after it is written.
    report_lost();
    report({.notes = {"the log of this run is written again"}});
    return true;
}

void LogWriter::report_lost()
{
    for (const Stream stream : {Stream::out, Stream::err}) {
        if (auto& unreported = m_lost[index_of(stream)].unreported) {
            Event event;
            event.kind = Event::Kind::log_lost;
            event.at = m_clock.now();
            event.stream = stream;
            event.from = unreported->first;
            event.to = unreported->second;
            journal(event);
            unreported.reset();
        }
    }
}

/// The file `order`, unless the log is known to be broken.
int LogWriter::order() const
{
    return m_broken ? -1 : m_setup.files.order.get();
}

/// Records the current time for the output since the last one.
void LogWriter::note_time()
{
    m_times.note(m_written, m_clock, m_broken ? -1 : m_setup.files.directory.get());
}

void LogWriter::journal(const Event& event)
{
    if (log::is_on(log::Level::info, log::Part::supervisor)) {
        Event without_output = event;
        without_output.tail.reset();
        std::string line = to_line(without_output);
        line.pop_back(); // the end of the line
        log::info(log::Part::supervisor, "journal: {}", line);
    }
    if (m_pending_events.size() < k_max_pending_events) {
        m_pending_events.push_back(event);
    }
    write_pending_events();
}

void LogWriter::write_pending_events()
{
    while (!m_pending_events.empty()) {
        if (!m_journal.append(m_pending_events.front())) {
            if (!m_reserve) {
                return;
            }
            ::unlinkat(m_setup.files.directory.get(), k_reserve_name, 0);
            m_reserve = false;
            continue;
        }
        m_pending_events.pop_front();
    }
    // A file server may report an error only now.
    if (m_awaits_end &&
        (is_local(m_setup.files.directory.get()) || ::fsync(m_setup.files.journal.get()) == 0)) {
        m_awaits_end = false;
        report({.recorded = true});
    }
}

void LogWriter::tick()
{
    const auto now = m_clock.steady();
    m_next_tick = now + k_tick;
    if (now >= m_next_beat) {
        m_next_beat = now + k_heartbeat_period;
        beat();
        write_pending_events();
    }
    check_requests();
}

void LogWriter::check_requests()
{
    if (!m_setup.directory) {
        return;
    }
    if (auto request = m_seen.stop ? std::nullopt : m_setup.directory->stop_request()) {
        m_seen.stop = true;
        report({.stop_request = std::move(request)});
    }
    if (auto request = m_seen.save ? std::nullopt : m_setup.directory->save_request()) {
        m_seen.save = true;
        report({.save_request = std::move(request)});
    }
    if (auto request = m_setup.next ? m_setup.directory->rehearsal_request() : std::nullopt;
        request && *request != m_seen.rehearsal) {
        m_seen.rehearsal = *request;
        report({.rehearsal_request = std::move(request)});
    }
    if (auto request = m_setup.exemptible && !m_seen.exemption ? m_setup.directory->exemption()
                                                               : std::nullopt) {
        m_seen.exemption = true;
        report({.exemption = std::move(request)});
    }
    if (auto text = read_file(m_setup.files.directory.get(), k_extended_file);
        text && *text != m_seen.extension) {
        m_seen.extension = *text;
        report({.extension = *std::move(text)});
    }
    if (m_setup.next && !m_seen.fence && m_setup.directory->is_claimed(*m_setup.next)) {
        m_seen.fence = true;
        report({.fenced = true});
    }
}

void LogWriter::make_stop_file()
{
    const Descriptor file(::openat(m_setup.files.directory.get(), k_stop_file,
                                   O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

/// Readers see the old file or the new one. Errors are ignored: the journal has the essential
/// facts.
void LogWriter::replace(const std::string& name, const std::string& text)
{
    const std::string temporary = "." + name;
    const int directory = m_setup.files.directory.get();
    const Descriptor file(::openat(directory, temporary.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file && write_all(file.get(), text) && ::fdatasync(file.get()) == 0) {
        ::renameat(directory, temporary.c_str(), directory, name.c_str());
    } else if (file) {
        ::unlinkat(directory, temporary.c_str(), 0);
    }
}

void LogWriter::beat()
{
    const std::string line =
        to_line(Heartbeat{m_clock.now(), m_setup.job, ::getpid(), m_written[0], m_written[1]});
    // If the heartbeat cannot be written, readers should see that it stops.
    [[maybe_unused]] const ssize_t written =
        ::pwrite(m_setup.files.heartbeat.get(), line.data(), line.size(), 0);
}

void LogWriter::make_reserve()
{
    const int directory = m_setup.files.directory.get();
    if (m_reserve || directory < 0) {
        return;
    }
    const Descriptor file(
        ::openat(directory, k_reserve_name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    m_reserve = file && write_all(file.get(), std::string(k_reserve, '\0'));
}

void LogWriter::answer(const Question& question)
{
    Answer answer{question.asker, question.bookmark, {}};
    const LogFiles files{{m_setup.files.logs[0].get(), m_setup.files.logs[1].get()},
                         m_setup.files.order.get(),
                         {&m_lost[0].all, &m_lost[1].all}};
    answer.pieces = read_on(files, answer.bookmark, question.end, k_history_piece);
    News news;
    news.answers.push_back(std::move(answer));
    report(std::move(news));
}

void LogWriter::write_end(const Event& ended)
{
    const bool local = is_local(m_setup.files.directory.get());
    m_order.write(order());
    report_lost();
    if (!local) {
        sync_files();
    }
    m_awaits_end = true;
    journal(ended);
    beat();
    ::unlinkat(m_setup.files.directory.get(), k_reserve_name, 0);
    m_reserve = false;
    if (m_setup.directory) {
        m_setup.directory->forget_keys();
    }
    if (!local) {
        ::fsync(m_setup.files.heartbeat.get());
    }
    report({.written = true});
    if (local) {
        sync_files();
        ::fsync(m_setup.files.journal.get());
    }
    report({.synced = true});
}

void LogWriter::sync_files()
{
    for (const Descriptor& log : m_setup.files.logs) {
        ::fdatasync(log.get());
    }
    ::fdatasync(m_setup.files.order.get());
}

} // namespace gpuq::supervisor
