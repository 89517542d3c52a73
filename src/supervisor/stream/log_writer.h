// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "ports/clock.h"
#include "runs/records/journal.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/rank_notes.h"
#include "supervisor/stream/backlog.h"
#include "supervisor/stream/history.h"
#include "supervisor/stream/log_index.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gpuq::supervisor {

/// Whether an event must be on the disk before anything else happens.
enum class Urgency { soon, now };

/// The only thread that accesses the state directory while the program runs: a hanging disk stops
/// this thread and then, once the backlog is full, the program, but never the loop.
///
/// If a write fails, the bytes are missing from the log, but clients still get them; the loss is
/// recorded in the journal. A full disk is retried once it has free space; a small reserve file is
/// deleted to make space for the journal.
///
/// All functions are for the thread of the loop. They only hand work over and return at once,
/// except stop_request_now(), which reads the disk, and the destructor.
class LogWriter {
public:
    struct Setup {
        std::optional<RunDirectory> directory;
        LinkFiles files;
        JobId job;
        std::chrono::milliseconds retry{5'000};
        std::optional<LinkNumber> next; ///< of a chain: report when it has been claimed
        bool exemptible = false;        ///< its idle GPUs may be taken back: check for exempt.json
    };
    /// `backlog` and `clock` must outlive the object. `wake`: an eventfd, written when there is
    /// news.
    LogWriter(Setup setup, Backlog& backlog, Clock& clock, int wake);
    /// Waits for the thread: forever if the disk hangs forever.
    ~LogWriter();
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    void start();
    /// Before start(): the text of a stop request that already exists.
    std::optional<std::string> stop_request_now() const;
    /// Notifies the thread of new data in the backlog.
    void poke();
    void record(Event event, Urgency urgency = Urgency::soon);
    /// Reads from a bookmark up to `end`; the answer arrives in take_news().
    void request_history(int asker, const Bookmark& bookmark, const Position& end);
    /// Checks for a stop request now instead of at the next tick (one second).
    void check_stop();
    /// Creates the link's file `stop`: GPUQ_STOP_FILE.
    void drop_stop_file();
    /// Replaces the link's file `deadline`: GPUQ_DEADLINE_FILE.
    void write_deadline(std::string text);
    /// Replaces the link's idle.json (runs/idle.h).
    void write_idle(std::string text);
    /// Reads the notes of the ranks (rank_notes.h).
    void request_rank_notes();
    /// Takes one of this hour's releases (RunDirectory::take_release).
    void request_release(std::string name, int most);
    /// Wakes the loop after the next written chunk.
    void report_space() { m_report_space = true; }
    /// Nothing is appended to the backlog any more: writes everything, then `ended`.
    void finish(Event ended);

    struct Answer {
        int asker = 0;
        Bookmark bookmark;
        std::vector<Piece> pieces;
    };
    struct News {
        std::optional<std::string> stop_request;      ///< the text of stop.json, once
        std::optional<std::string> save_request;      ///< the text of save_and_stop.json, once
        std::optional<std::string> rehearsal_request; ///< each new text once
        std::optional<std::string> exemption;         ///< the text of exempt.json, once
        std::optional<std::string> extension;         ///< each new text of `extended`
        std::optional<RankNotes> rank_notes;          ///< answer to request_rank_notes()
        std::optional<bool> may_release;              ///< answer to request_release()
        bool fenced = false;            ///< the next link has started: this one was declared dead
        bool checked = false;           ///< answer to check_stop()
        std::vector<std::string> notes; ///< messages for users
        std::vector<Answer> answers;
        bool written = false;  ///< after finish(): all that could be written is visible to readers
        bool recorded = false; ///< after finish(): the event is among it
        bool synced = false;   ///< after finish(): it survives a crash of the node
    };
    News take_news();

private:
    struct Question {
        int asker = 0;
        Bookmark bookmark;
        Position end{};
    };
    struct Work {
        std::vector<Event> events;
        std::optional<Question> question;
        std::optional<Event> ended;
        std::optional<std::string> deadline, idle;
        std::optional<std::pair<std::string, int>> release;
        bool sync = false;
        bool check_requests = false;
        bool stop_file = false;
        bool rank_notes = false;
        bool stop = false;
    };

    void run();
    Work wait_for_work();
    void do_work(Work& work);
    bool write_chunks();
    bool write_chunk(const Chunk& chunk);
    void lose(const Chunk& chunk, std::size_t from, int error);
    bool may_write();
    void report_lost();
    int order() const;
    void note_time();
    void journal(const Event& event);
    void write_pending_events();
    void tick();
    void check_requests();
    void make_stop_file();
    void replace(const std::string& name, const std::string& text);
    void beat();
    void make_reserve();
    void answer(const Question& question);
    void write_end(const Event& ended);
    void sync_files();
    void report(News news);
    template <typename Change>
    void change(Change change);

    Setup m_setup;
    Backlog& m_backlog;
    Clock& m_clock;
    const int m_wake;
    std::thread m_thread;
    std::atomic<bool> m_report_space = false;

    // Shared, protected by the mutex.
    std::mutex m_mutex;
    std::condition_variable m_condition;
    Work m_work;
    std::deque<Question> m_questions;
    News m_news;

    // Only used by the thread.
    JournalFile m_journal;
    std::deque<Event> m_pending_events;
    bool m_awaits_end = false; ///< finish() has been called; its event is not recorded yet
    struct Lost {
        Ranges all;
        std::optional<std::pair<std::uint64_t, std::uint64_t>> unreported;
    };
    std::array<Lost, 2> m_lost; ///< of each stream
    Position m_written{};
    OrderFile m_order;
    TimesFile m_times;
    bool m_broken = false;
    bool m_reserve = false;
    struct Seen {
        bool stop = false, save = false, fence = false, exemption = false;
        std::string rehearsal, extension;
    };
    Seen m_seen; ///< requests that were reported
    std::chrono::steady_clock::time_point m_next_tick, m_next_beat, m_next_try;
    std::optional<std::chrono::steady_clock::time_point> m_sync_due;
};

} // namespace gpuq::supervisor
