// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/keys.h"
#include "core/result.h"
#include "core/run.h"
#include "remote/backlog.h"
#include "remote/channel.h"
#include "remote/lifeline.h"
#include "remote/ssh_words.h"
#include "remote/streams.h"
#include "remote/transport.h"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// Who sits in front of a session: a terminal, or pipes.
class Person {
public:
    virtual ~Person() = default;
    /// To wait on for signals; -1: none come.
    virtual int signals() const = 0;
    virtual std::optional<int> next_signal() = 0;
    /// The terminal's size has changed since it was asked last.
    virtual bool resized() = 0;
    virtual std::optional<TerminalSize> size() const = 0;
    /// The terminal is the verb's from now on, and ours again. May be said twice.
    virtual void lend_terminal() = 0;
    virtual void take_terminal_back() = 0;
    /// What the verb has written passes to the terminal.
    virtual void watch(std::string_view bytes) = 0;
    /// A line of gpuq's own.
    virtual void say(std::string_view words) = 0;
    /// How the connection is, in the place of what was said before; empty: as it should be.
    virtual void show_state(std::string_view words) = 0;
    /// What the user is to do now, in the same place: at once, and even where nothing else is said.
    virtual void show_request(std::string_view words) = 0;
    /// From now on the keys are gpuq's: one by one, and not echoed.
    virtual void begin_own_keys() = 0;
    virtual void end_own_keys() = 0;
    /// Words of ssh's while it connects for the first time, for a person.
    virtual void show_ssh(std::string_view line) = 0;
};

struct ClientOptions {
    std::string host;            ///< for people
    std::string called = "gpuq"; ///< what they type for a verb there: `gpuq --host login1`
    std::string once_more;       ///< what they type for the rest of this; empty: what shows the run
    std::uint64_t shown_before = 0; ///< bytes, by earlier sessions: of the file of `logs --to`
    frames::Start start;
    Pace pace;
    int in = 0, out = 1, err = 2;
    /// What is written of a stream's bytes; of an empty piece, at its end, what was kept back.
    /// Unset: the bytes themselves.
    std::array<std::function<std::string(std::string_view)>, 2> shown_as;
    bool reads_input = true;
    bool asks = false; ///< `in` is a terminal, and what ssh asks can be shown
    /// The session is not there any more, though a verb was started: another host answers, or it
    /// was killed. What to start in its place, or why nothing.
    struct Lost {
        std::optional<frames::Following> following;
        std::uint64_t out = 0, err = 0; ///< shown of it
        std::string host;
    };
    std::function<Result<frames::Start>(const Lost&)> in_its_place;
    std::function<std::array<unsigned char, 8>()> random;
    /// Takes a run there as a host of ssh. Unset: none is asked for, and one that comes is an
    /// error.
    std::function<void(const frames::SshTarget&)> on_ssh_target;
    /// What listens here for number i of start.forwards; whoever comes waits until the verb has a
    /// run.
    std::vector<std::vector<Descriptor>> forwards;
};

/// While the host lets in only a user who answers its questions (client_login.cpp).
struct Login {
    Error error;          ///< why
    bool refused = false; ///< the last answers
    bool is_shown = false;
    bool has_keys = true; ///< until the terminal has hung up
    LoginState state;     ///< of what may let in
    Moment check_at, attempt_at;
    Moment other_key_at; ///< another key than Enter was pressed
    int questions = 0;   ///< of this attempt
    std::optional<Question> question;
    std::string answer; ///< wiped
};

/// A verb on another host as if it ran here. One use.
class Client {
public:
    Client(ClientOptions options, Transport& transport, Person& person);

    /// Until the verb has ended, or the person has left: the exit status.
    Result<int> run();

private:
    /// Output of one stream: what has come and what is written.
    struct Shown {
        std::uint64_t received = 0;
        Backlog waiting;
        bool broken = false; ///< nobody reads it
        /// Where the bytes that wait are not those that came: up to here all is written.
        std::optional<std::uint64_t> settled;
        std::uint64_t written() const { return settled ? *settled : received - waiting.size(); }
    };

    void new_session();
    void wait();
    void on_timers();
    void connect();
    std::string first_bytes();
    bool is_silent() const;
    void go_past_shared();
    void disconnect();
    void end_of_connection();
    void on_connection();
    void on_bytes(std::string_view bytes);
    void on_frame(frames::Frame&& frame);
    bool is_unknown_stream(const frames::Frame& frame) const;
    void on_hello(const frames::Hello& hello);
    void on_output(const frames::OutputBytes& output);
    void nonsense(std::string_view what);
    void on_ssh_words();
    void on_input();
    bool has_interrupt(std::string_view typed);
    void on_interrupt();
    bool reads_typed() const
    {
        return !m_input_over && m_was_live && m_input.size() < frames::k_input_room;
    }
    void needs_user(Error error);
    void take_typed();
    void drop_typed() const;
    void show_login();
    void on_login_timer(Moment at);
    void on_question();
    void cancel_login();
    void on_login_keys();
    void on_login_key(const KeyEvent& key);
    void edit_answer(const KeyEvent& key);
    void end_login();
    void on_signals();
    void send_signals();
    void on_network();
    void on_visitor(std::uint32_t forward, int listener);
    void on_stream_gone(const frames::StreamGone& gone);
    void say_of_streams(const std::string& why);
    void send_input();
    void send_taken();
    void write_output();
    void show_as(std::size_t stream, std::string_view bytes);
    void show_the_rest();
    std::size_t write_some(std::size_t stream, std::string_view bytes);
    void on_closed_output(std::size_t stream, int error);
    void live();
    void state_changed();
    void leave(int status, std::string_view words);
    std::string way_back() const;
    void stop(Error error);
    Error no_answer() const;
    bool takes_visitors() const
    {
        return is_open() && m_following && m_streams.size() < frames::k_most_streams;
    }
    bool is_open() const { return m_channel && m_hello; }
    bool is_in_front() const { return m_options.start.raw; }
    bool all_written() const { return m_shown[0].waiting.size() + m_shown[1].waiting.size() == 0; }
    int milliseconds_to_wait() const;

    ClientOptions m_options;
    Transport& m_transport;
    Person& m_person;
    Lifeline m_lifeline;
    std::string m_session;
    std::array<Descriptor, 2> m_own; ///< opened_again
    Descriptor m_network;            ///< netlink: addresses and routes

    std::optional<Channel> m_channel;
    Descriptor m_errors; ///< ssh's own words
    frames::Greeting m_greeting;
    frames::OutputDecoder m_decoder;
    bool m_marked = false; ///< the marker has come
    bool m_hello = false;
    std::string m_ssh_words, m_ssh_line;
    std::size_t m_ssh_lines = 0;
    bool m_alone = false;
    std::uint32_t m_connections = 0;
    bool m_shared_hung = false; ///< a shared connection, since the last one broke
    std::optional<Login> m_login;
    bool m_was_live = false;
    std::string m_other_host; ///< the name by which it calls itself

    bool m_started = false;
    std::array<Shown, 2> m_shown;
    std::array<std::uint64_t, 2> m_told{};
    std::optional<Moment> m_tell_at;
    Backlog m_input;
    KeyReader m_keys; ///< of what is typed
    std::uint64_t m_input_limit = frames::k_input_room;
    bool m_input_over = false, m_input_end_sent = false;
    std::vector<int> m_signals; ///< of the session, all of them
    std::size_t m_signals_sent = 0, m_signals_taken = 0;
    std::optional<frames::Following> m_following;
    Streams m_streams;
    std::uint32_t m_next_stream = 0;
    std::string m_said_of_streams;
    std::optional<frames::Exit> m_exit;
    std::optional<int> m_left;
    std::optional<Error> m_error;
    std::uint64_t m_beats = 0;
    std::optional<Moment> m_lost_at;
};

} // namespace gpuq::remote
