// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/message.h"
#include "cli/base/printer.h"
#include "cli/base/signals.h"
#include "cli/base/verb.h"
#include "cli/client/connections.h"
#include "cli/client/shown_position.h"
#include "cli/client/stdin_reader.h"
#include "cli/render/disk_view.h"
#include "core/run.h"
#include "io/event_loop.h"
#include "runs/records/record.h"
#include "term/escape_keys.h"
#include "term/raw_terminal.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

struct SessionOptions {
    bool terminal = false; ///< a user is present: Ctrl-C, HUP and TERM detach
    bool quiet = false;
    /// The owner started the run, feeds its stdin and sends its signals; a visitor only types into
    /// the program's terminal, if it has one.
    enum class Part { owner, visitor } part = Part::owner;
    bool take = false;                      ///< detach all other clients
    bool over = false;                      ///< the run has ended: read only the disk
    std::optional<Shown> shown = Shown{};   ///< position to continue from; unset: from now on
    std::array<std::uint64_t, 2> printed{}; ///< bytes of earlier links, by this command
    DetachKey detach_key;
    LinkNumber link; ///< link of the chain to connect to
    /// Age of the run at its handover, after which it needs no process on this host (src/README.md,
    /// How a run lives, 3).
    std::chrono::milliseconds handover{10'000};
    /// The end of a run is no notice (cli/base/notices.h) for a client that has followed it for a
    /// shorter time: its user is probably watching.
    std::chrono::milliseconds notice_after{10'000};
    /// Called with each message of the supervisor; may be empty.
    std::function<void(const std::string& text)> on_note = {};
};

/// Connects this process's stdin, stdout, stderr and signals to a started run, until the run ends
/// or the user leaves. Any connection may break at any time: output continues at the next byte,
/// input after the last byte that the supervisor acknowledged.
class Session {
public:
    /// `signals` must be created before the run is started, so that none is missed.
    Session(Services& services, Signals& signals, const Run& run, JobId job,
            SessionOptions options);

    /// `first`: the streams of the supervisor's own step; without it a connection is opened.
    /// Returns gpuq's exit status.
    Result<int> run(std::optional<StepProcess> first);
    /// How many bytes of the run this session has shown.
    std::uint64_t printed(Stream stream) const
    {
        const Shown from = m_options.shown.value_or(Shown{});
        return m_printer.shown(stream) - (stream == Stream::out ? from.out : from.err);
    }
    /// After run(): only the link has ended, and the run continues in the next one.
    bool continues() const { return !m_left && m_ended && m_ended->ending.continues; }
    /// After run(): how the link ended; nothing if it continues without this client.
    std::optional<Ending> ending() const
    {
        return m_ended ? std::optional(m_ended->ending) : std::nullopt;
    }

private:
    using Clock = std::chrono::steady_clock;

    std::optional<Connection>& current() { return m_connections.current(); }
    std::optional<Connection>& next() { return m_connections.next(); }
    std::optional<Connection>& guard() { return m_connections.guard(); }
    std::vector<wire::Frame> greeting() const;
    std::optional<wire::Terminal> terminal(bool redraw) const;
    bool has_terminal() const { return m_run.request.pty.has_value(); }
    bool is_owner() const { return m_options.part == SessionOptions::Part::owner; }
    bool is_over() const;
    void watch_all();
    void watch(std::function<EventLoop::Interest()> interest, void (Session::*handle)());
    void watch(std::optional<Connection>& (Session::*connection)(), void (Session::*handle)());
    void on_signals();
    void on_interrupt();
    void on_printer();
    void print_fitting();
    void on_stdin();
    void on_terminal_changed();
    void on_taken(const std::string& by);
    void on_current();
    void on_next();
    void on_guard();
    void on_frame(wire::Frame frame);
    void on_broken();
    void check_disk();
    void cancel_job();
    void stop_timers();
    void send_input();
    void stop();
    void leave(int status);
    void end_as_lost();
    void forward_signals();
    Cursor cursor() const;
    void print_message(const std::string& text) const;
    void note(const std::string& text);
    void print_notes();
    void record_shown();
    bool has_left() const { return m_left || m_turned_away; }
    int finish();

    Services& m_services;
    Signals& m_signals;
    const Run& m_run;
    JobId m_job;
    SessionOptions m_options;
    Printer m_printer;
    RawTerminal m_terminal;
    std::vector<std::string> m_notes; ///< to be printed when the terminal is restored

    EventLoop m_loop;
    Connections m_connections;
    DiskView m_disk;
    EventLoop::Timer m_detach_timer; ///< to detach, unless Ctrl-C is repeated
    EventLoop::Timer m_query_timer;  ///< disconnected: to check disk and Slurm
    EventLoop::Timer m_cancel_timer; ///< to cancel the job, unless the stop succeeds
    std::vector<int> m_signals_to_send;
    Clock::time_point m_begun = Clock::now();
    ShownPosition m_shown;
    StdinReader m_stdin;
    bool m_stopping = false;
    bool m_reported_lost = false;
    bool m_turned_away = false; ///< the supervisor has refused this visitor
    std::optional<wire::Ended> m_ended;
    std::optional<int> m_left;
};

} // namespace gpuq::cli
