// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/abandonment.h"
#include "supervisor/base/deadline.h"
#include "supervisor/base/ending.h"
#include "supervisor/base/helper_call.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/loop.h"
#include "supervisor/base/memory_events.h"
#include "supervisor/base/program.h"
#include "supervisor/base/rank_notes.h"
#include "supervisor/chain/chain_keeper.h"
#include "supervisor/idle_keeper.h"
#include "supervisor/keeper/link_credentials.h"
#include "supervisor/meeting_port.h"
#include "supervisor/sampler/sampler.h"
#include "supervisor/stream/backlog.h"
#include "supervisor/stream/clients.h"
#include "supervisor/stream/input.h"
#include "supervisor/stream/log_writer.h"
#include "supervisor/stream/tail.h"
#include "supervisor/supervise.h"
#include "term/terminal_modes.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace gpuq::supervisor {

/// Slurm's TERM reaches the processes of a job one after the other, within this time.
constexpr std::chrono::milliseconds k_term_spread{100};

/// Maximum time that `gpuq stop --checkpoint` waits for the program to save.
constexpr std::chrono::seconds k_time_to_save{600};

/// The event loop around one program. It never blocks: disk access is done by a thread and Slurm
/// requests by helper processes, and a client that does not read only delays itself.
class Supervisor {
public:
    /// The references must outlive the object; `guardian` is a descriptor that closes when the
    /// guardian dies.
    Supervisor(Services& services, const Options& options,
               const std::optional<LinkStart>& link_start, int guardian);

    /// Runs from reading the run's record to the end of the run; returns the run's status.
    int run();
    /// True if the guardian is gone and has left an allocation that must be ended.
    bool has_to_complete() const
    {
        return m_guardian_gone && m_options.first && m_options.job && !m_completed;
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
    /// Progress in finding the reason of a TERM: Slurm sends it to all processes of a job, for
    /// reasons of its own.
    enum class Term { none, checking_stop, asking_slurm, known };

    Clock::time_point now() const { return m_loop.now(); }

    // Start: starting.cpp.
    void open_records();
    void start();
    std::optional<NotStarted> start_program(const Run& run);
    /// The command line that starts the program as each of the run's ranks.
    std::vector<std::string> rank_arguments(const Run& run);
    std::vector<std::string> environment(const Run& run);
    void not_started(NotStarted reason);
    void report(const std::string& text);

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
    void report_memory(const std::string& node, const MemoryKills& all, ReportTo report_to);
    bool knows_rank_notes();

    // Ending the program: stopping.cpp.
    void signal_program(int number);
    void stop(const std::string& by);
    void kill_for(Termination termination, Clock::duration grace);
    void kill_when_due();
    void terminated();
    void find_term_reason();
    void take_walltime(const JobNews& news);
    void take_end(const JobNews& news);
    void take_grace(const JobNews& news);
    Termination limit_reached() const;
    void term_explained(const std::optional<JobNews>& news);
    void query_again_when_due();
    bool left_before_term() const;
    void conclude_term(std::optional<Termination> termination);
    void check_input_owner();
    void warn();
    bool ask_slurm(const std::string& queues = "");
    void slurm_answered();

    // A chain: chaining.cpp.
    void join_chain();
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

    // The program's terminal: terminal.cpp.
    std::string screen(TerminalSize size) const;
    void resize(TerminalSize size, bool anew);
    void restore_size();
    void check_abandoned();

    // After it: parting.cpp.
    void clear_leftovers();
    std::vector<pid_t> left_behind() const;
    bool nothing_left() const;
    bool may_still_be_terminated() const;
    bool may_still_be_killed() const;
    void conclude_or_record();
    void record_end();
    void report_end();
    bool is_worth_a_note() const;
    void note_use();
    void part();
    bool out_of_time() const;

    void journal(Event::Kind kind, const std::string& detail, Urgency urgency = Urgency::soon);
    Event event(Event::Kind kind) const;

    Services& m_services;
    const Options& m_options;
    const int m_guardian;
    Loop m_loop;
    std::vector<Loop::Watch> m_watches;

    std::optional<Run> m_run;
    std::optional<Program> m_program;
    Backlog m_backlog;
    InputBuffer m_input;
    std::unique_ptr<LogWriter> m_log;
    std::unique_ptr<Clients> m_clients;
    HelperCall m_slurm;                    ///< queries about the job
    std::optional<LinkStart> m_link_start; ///< of a chain
    std::optional<ChainKeeper> m_chain;
    std::optional<Termination> m_notice; ///< why the program was notified to save and leave
    HelperCall m_elsewhere;              ///< the notice on the other nodes
    bool m_fenced = false;               ///< the next link has taken over
    bool m_listened = false;
    std::optional<Clock::time_point> m_listened_at;
    std::optional<IdleKeeper> m_idle; ///< if the partition takes idle GPUs back
    LinkCredentials m_credentials;
    std::set<std::string> m_reports; ///< already in the journal
    Sampler m_sampler;
    HelperCall m_use_note; ///< the note of the use of its GPUs, for accounting
    bool m_to_be_noted = false;
    bool m_to_be_logged = false;
    Descriptor m_link_directory; ///< for the sampler and the ticket keeper
    std::optional<Clock::time_point> m_sample_at;
    Tail m_tail;
    std::optional<MemoryWatch> m_memory;
    std::map<std::string, MemoryKills> m_reported_memory; ///< by node
    std::optional<MeetingPort> m_port;                    ///< for the ranks
    std::optional<RankNotes> m_rank_notes;
    bool m_rank_notes_asked = false; ///< and not answered yet
    bool m_rank_notes_last = false;  ///< requested after the end of the program
    Clock::time_point m_next_memory;
    std::chrono::seconds m_kill_wait{0};
    std::optional<Deadline> m_deadline;
    std::optional<Time> m_link_end; ///< of a chain: a link may be shorter than its job
    TerminalModes m_modes;
    TerminalSize m_size;
    std::optional<Abandonment> m_abandonment;
    bool m_was_attached = false;

    Phase m_phase = Phase::running;
    Observed m_observed;
    Ending m_ending;
    bool m_guardian_gone = false, m_completed = false;
    std::optional<std::string> m_stop_asked;        ///< the requester
    std::optional<std::chrono::minutes> m_walltime; ///< according to Slurm's last answer
    Term m_term = Term::none;
    bool m_program_caught_term = false;
    bool m_written = false, m_synced = false;
    bool m_asked_for_warning = false;
    std::optional<Clock::time_point> m_query_limit_at;
    std::optional<bool> m_may_get_grace; ///< nullopt: unknown

    Clock::time_point m_started_at;
    Clock::time_point m_check_until, m_term_at, m_program_ended_at, m_last_output_at, m_phase_since,
        m_sampled_until;
    std::optional<Clock::time_point> m_saved_at; ///< after the notice
    bool m_ending_saved = false;
    std::optional<Clock::time_point> m_term_due, m_kill_at, m_notified_at, m_ask_again_at,
        m_restore_size_at;
    Clock::time_point m_next_query;
};

/// The requester of a stop, from the text of a stop.json.
std::string requester_of(const std::optional<std::string>& stop_json);

} // namespace gpuq::supervisor
