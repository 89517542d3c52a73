// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/abandonment.h"
#include "supervisor/base/ending.h"
#include "supervisor/base/helper_call.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/loop.h"
#include "supervisor/base/meeting_port.h"
#include "supervisor/base/program.h"
#include "supervisor/base/rank_notes.h"
#include "supervisor/chain/chain_keeper.h"
#include "supervisor/idle_keeper.h"
#include "supervisor/keeper/link_credentials.h"
#include "supervisor/memory_reports.h"
#include "supervisor/program_terminal.h"
#include "supervisor/stream/backlog.h"
#include "supervisor/stream/clients.h"
#include "supervisor/stream/input.h"
#include "supervisor/stream/log_writer.h"
#include "supervisor/stream/tail.h"
#include "supervisor/supervise.h"
#include "supervisor/time_limit.h"
#include "supervisor/use_recorder.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Slurm's TERM reaches the processes of a job one after the other, within this time.
constexpr std::chrono::milliseconds k_term_spread{100};
/// The same on a busy node. Worth waiting for if nothing else explains that the program got TERM.
constexpr std::chrono::milliseconds k_late_term{1000};

/// Maximum time that `gpuq stop --checkpoint` waits for the program to save.
constexpr std::chrono::seconds k_time_to_save{600};

/// The event loop around one program. It never blocks: disk access is done by a thread and Slurm
/// requests by helper processes, and a client that does not read only delays itself.
class Supervisor {
public:
    /// The references must outlive the object; `guardian` is a descriptor that closes when the
    /// guardian dies.
    Supervisor(Services& services, const Options& options, int guardian);

    /// Runs from reading the run's record to the end of the run; returns the run's status.
    /// `link_start`: of a later link of a chain.
    int run(const std::optional<LinkStart>& link_start);
    /// True if the guardian is gone and has left an allocation that must be ended.
    bool has_to_complete() const
    {
        return m_guardian.gone && m_options.first && m_options.job && !m_guardian.completed;
    }

private:
    using Clock = std::chrono::steady_clock;

    enum class Phase {
        running,   ///< the program runs
        leftovers, ///< the program has ended, but not its leftover processes and output
        settling,  ///< of a chain: determining whether the run continues
        recording, ///< the log is being completed
        parting,   ///< the clients are being informed
        done,
    };
    struct Progress {
        Phase phase = Phase::running;
        Clock::time_point since; ///< when the log began to be completed
        Clock::time_point program_ended_at;
        std::optional<Clock::time_point> notified_at; ///< when all clients had been sent the end
        bool written = false, synced = false;         ///< the log, after its last event
        bool recorded = false;                        ///< the last event
        bool fenced = false;                          ///< the next link has taken over
    };
    struct Guardian {
        int pipe = -1; ///< closes when it dies
        bool gone = false;
        bool completed = false; ///< the allocation has been ended in its place
    };
    struct Output {
        Backlog backlog;
        Tail tail;
        bool to_be_logged = false;
        Clock::time_point last_at;
    };
    /// The search for the reason of a TERM: Slurm sends it to all processes of a job, for reasons
    /// of its own.
    struct Term {
        enum class State { none, checking_stop, asking_slurm, known };
        State state = State::none;
        Clock::time_point at, check_until;
        std::optional<Clock::time_point> ask_again_at;
        std::chrono::seconds kill_wait{0}; ///< until Slurm's KILL
        bool program_caught_it = false;    ///< and may have ended for it
        bool is_open() const
        {
            return state == State::checking_stop || state == State::asking_slurm;
        }
        Clock::time_point kill_at() const { return at + kill_wait; }
    };
    /// How the program is made to leave.
    struct Leaving {
        HelperCall elsewhere;                  ///< the notice on the other nodes
        std::optional<std::string> stop_asked; ///< the requester
        std::optional<Termination> notice;     ///< why the program was notified to save and leave
        bool has_listeners = false;            ///< at `listened_at`
        std::optional<Clock::time_point> listened_at;
        std::optional<Clock::time_point> saved_at; ///< after the notice
        bool ending_saved = false;
        std::optional<Clock::time_point> term_at, kill_at;
        void kill_by(Clock::time_point at) { kill_at = kill_at ? std::min(*kill_at, at) : at; }
    };
    /// Of a run with several ranks.
    struct Ranks {
        std::optional<MeetingPort> port;
        std::optional<RankNotes> notes;
        bool asked = false; ///< for notes, and not answered yet
        bool last = false;  ///< requested after the end of the program
    };

    Clock::time_point now() const { return m_loop.now(); }

    // Start: starting.cpp.
    void open_records(const std::optional<LinkStart>& link_start);
    void start(const std::optional<LinkStart>& link_start);
    std::optional<NotStarted> start_program(const Run& run);
    /// The command line that starts the program as each of the run's ranks.
    std::vector<std::string> rank_arguments(const Run& run);
    std::vector<std::string> environment(const Run& run);
    void not_started(NotStarted reason);
    std::optional<std::string> listen_on_network();
    void limit_time(const Run& run);

    // The loop: supervisor.cpp.
    void watch();
    void round();
    void make_space();
    void guardian_gone();
    void reap();
    void read_report();
    void read_output(Stream stream);
    void take_news();
    void sample_when_due();
    void check_memory_when_due();
    enum class ReportTo { journal, clients };
    void check_memory(ReportTo report_to);
    bool knows_rank_notes();

    // Ending the program: stopping.cpp.
    void signal_program(int number);
    void stop(const std::string& by);
    void kill_for(Termination termination, Clock::duration grace);
    void kill_when_due();
    void terminated();
    void find_term_reason();
    void take_grace(const JobNews& news);
    Termination limit_reached() const;
    void term_explained(const std::optional<JobNews>& news);
    void query_again_when_due();
    bool left_before_term() const;
    /// The program died or exited because of a TERM that this process has not sent.
    bool left_by_unexplained_term() const;
    void conclude_term(std::optional<Termination> termination);
    void check_input_owner();
    void check_abandoned();
    void warn();
    void take_end(const JobNews& news);
    bool ask_slurm(const std::string& queues = "");
    void slurm_answered();

    // A chain: chaining.cpp.
    void join_chain(const std::optional<LinkStart>& link_start);
    void report_link_start();
    std::vector<std::string> program_arguments(const Run& run) const;
    void describe_link_start(Environment& variables) const;
    void update_chain();
    bool has_listeners();
    bool saves_in_its_own_time();
    std::size_t notice(Termination termination, Clock::time_point until);
    void noticed_elsewhere();
    void report_tickets();
    void notice_when_due();
    void end_when_saved();
    void save_and_stop(const std::string& by);
    void rehearse(const std::string& line);
    void fenced();
    void conclude_when_ended();
    std::vector<pid_t> own_helpers() const;

    // Idle GPUs: idling.cpp.
    void keep_idle_rule(const std::optional<std::string>& rules_json);
    void update_idle();
    IdleFinding report_idle(IdleFinding::State state);
    void warn_idle();
    void release_answered(bool may_release);
    void take_exemption(const std::string& text);
    void release_idle();

    // After it: parting.cpp.
    void clear_leftovers();
    void close_output();
    std::vector<pid_t> left_behind() const;
    bool nothing_left() const;
    bool may_still_be_terminated() const;
    bool may_still_be_killed() const;
    void conclude_or_record();
    void record_end();
    void report_end();
    void note_use();
    void part();
    bool out_of_time() const;

    void journal(Event::Kind kind, const std::string& detail, Urgency urgency = Urgency::soon);
    Event event(Event::Kind kind) const;

    Services& m_services;
    const Options& m_options;
    Loop m_loop;
    Guardian m_guardian;

    std::optional<Run> m_run;
    std::optional<Program> m_program;
    Output m_output;
    InputBuffer m_input;
    ProgramTerminal m_terminal;
    std::optional<Abandonment> m_abandonment; ///< of a shell
    std::unique_ptr<LogWriter> m_log;
    std::unique_ptr<Clients> m_clients;

    HelperCall m_slurm;               ///< queries about the job
    std::optional<TimeLimit> m_limit; ///< if the program could be started
    Term m_term;
    Leaving m_leaving;
    std::optional<ChainKeeper> m_chain;
    std::optional<IdleKeeper> m_idle; ///< if the partition takes idle GPUs back
    LinkCredentials m_credentials;
    UseRecorder m_use;
    std::optional<MemoryReports> m_memory;
    Ranks m_ranks;

    Progress m_progress;
    Observed m_observed;
    Ending m_ending;
};

/// The requester of a stop, from the text of a stop.json.
std::string requester_of(const std::optional<std::string>& stop_json);

} // namespace gpuq::supervisor
