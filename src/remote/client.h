// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "remote/backlog.h"
#include "remote/channel.h"
#include "remote/lifeline.h"
#include "remote/ssh_words.h"
#include "remote/streams.h"
#include "remote/transport.h"
#include "term/keys.h"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// The user interface of a session: a terminal, or pipes.
class Person {
public:
    virtual ~Person() = default;
    /// Descriptor to poll for signals; -1 if none can arrive.
    virtual int signals() const = 0;
    virtual std::optional<int> next_signal() = 0;
    /// True if the terminal's size has changed since the last call.
    virtual bool resized() = 0;
    virtual std::optional<TerminalSize> size() const = 0;
    /// Switches the terminal to the verb's use and back. Repeated calls have no effect.
    virtual void lend_terminal() = 0;
    virtual void take_terminal_back() = 0;
    /// Observes output of the verb on its way to the terminal.
    virtual void watch(std::string_view bytes) = 0;
    /// Prints a message of gpuq.
    virtual void say(std::string_view words) = 0;
    /// Shows the state of the connection, replacing the previous one; empty: connected.
    virtual void show_state(std::string_view words) = 0;
    /// Shows a request to the user in the same place, immediately and even if messages are
    /// suppressed.
    virtual void show_request(std::string_view words) = 0;
    /// Reads the keys for gpuq itself, one by one and without echo.
    virtual void begin_own_keys() = 0;
    virtual void end_own_keys() = 0;
    /// Shows a line that ssh prints while it connects for the first time.
    virtual void show_ssh(std::string_view line) = 0;
};

struct ClientOptions {
    std::string host;            ///< for messages
    std::string called = "gpuq"; ///< how the user calls gpuq for that host: `gpuq --host login1`
    std::string once_more;       ///< command that continues this session; empty: the one that shows
                                 ///< the run
    std::uint64_t shown_before = 0; ///< bytes shown by earlier sessions: the size of the file of
                                    ///< `logs --to`
    frames::Start start;
    Pace pace;
    int in = 0, out = 1, err = 2;
    /// Converts the bytes of a stream before they are written. Called with an empty piece at the
    /// end of the stream to get the remaining bytes. Unset: no conversion.
    std::array<std::function<std::string(std::string_view)>, 2> shown_as;
    bool reads_input = true;
    bool asks = false; ///< `in` is a terminal, and ssh's questions can be shown
    /// The session no longer exists although a verb was started: another host responded, or the
    /// session was killed. `in_its_place` returns the verb to start instead, or an error.
    struct Lost {
        std::optional<frames::Following> following;
        std::uint64_t out = 0, err = 0; ///< bytes already shown
        std::string host;
    };
    std::function<Result<frames::Start>(const Lost&)> in_its_place;
    std::function<std::array<unsigned char, 8>()> random;
    /// Receives a run as an ssh target. Unset: none is requested, and receiving one is a protocol
    /// error.
    std::function<void(const frames::SshTarget&)> on_ssh_target;
    /// Listening sockets for each entry of start.forwards. Connections wait until the verb has a
    /// run.
    std::vector<std::vector<Descriptor>> forwards;
};

/// State while the host requires an interactive login (client_login.cpp).
struct Login {
    Error error;          ///< why the login is needed
    bool refused = false; ///< the last answers were rejected
    bool is_shown = false;
    bool has_keys = true; ///< false when the terminal has hung up
    LoginState state;     ///< of keys, tickets and shared connections that may allow a login
    Moment check_at, attempt_at;
    Moment other_key_at; ///< when a key other than Enter was last pressed
    int questions = 0;   ///< in this attempt
    std::optional<Question> question;
    std::string answer; ///< wiped after use
};

/// Runs a verb on another host as if it ran locally. For a single use.
class Client {
public:
    Client(ClientOptions options, Transport& transport, Person& person);

    /// Runs until the verb has ended or the user has left; returns the exit status.
    Result<int> run();

private:
    /// One output stream: bytes received and bytes written.
    struct Shown {
        std::uint64_t received = 0;
        Backlog waiting;
        bool broken = false; ///< its reader has closed it
        /// Set if the bytes in `waiting` are converted: stream offset up to which everything is
        /// written.
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
    std::array<Descriptor, 2> m_own; ///< see opened_again()
    Descriptor m_network;            ///< netlink: changes of addresses and routes

    std::optional<Channel> m_channel;
    Descriptor m_errors; ///< ssh's stderr
    frames::Greeting m_greeting;
    frames::OutputDecoder m_decoder;
    bool m_marked = false; ///< the marker has been received
    bool m_hello = false;
    std::string m_ssh_words, m_ssh_line;
    std::size_t m_ssh_lines = 0;
    bool m_alone = false;
    std::uint32_t m_connections = 0;
    bool m_shared_hung = false; ///< a shared connection has been unresponsive since the connection
                                ///< was lost
    std::optional<Login> m_login;
    bool m_was_live = false;
    std::string m_other_host; ///< the host's own name

    bool m_started = false;
    std::array<Shown, 2> m_shown;
    std::array<std::uint64_t, 2> m_told{};
    std::optional<Moment> m_tell_at;
    Backlog m_input;
    KeyReader m_keys; ///< decodes typed keys
    std::uint64_t m_input_limit = frames::k_input_room;
    bool m_input_over = false, m_input_end_sent = false;
    std::vector<int> m_signals; ///< all signals of the session
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
