// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "io/event_loop.h"
#include "remote/channel.h"
#include "remote/client_forwards.h"
#include "remote/client_input.h"
#include "remote/client_output.h"
#include "remote/reconnect_policy.h"
#include "remote/ssh_arguments.h"
#include "remote/ssh_messages.h"
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
class UserInterface {
public:
    virtual ~UserInterface() = default;
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
    virtual void print_message(std::string_view message) = 0;
    /// Shows the state of the connection, replacing the previous one; empty: connected.
    virtual void show_state(std::string_view message) = 0;
    /// Shows a request to the user in the same place, immediately and even if messages are
    /// suppressed.
    virtual void show_request(std::string_view message) = 0;
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
    Error error;         ///< why the login is needed
    std::string request; ///< to the user, why to press Enter
    bool is_shown = false;
    bool has_keys = true; ///< false when the terminal has hung up
    LoginState state;     ///< of keys, tickets and shared connections that may allow a login
    Moment attempt_at;    ///< not to be attempted before
    Moment other_key_at;  ///< when a key other than Enter was last pressed
    int questions = 0;    ///< in this attempt
    std::optional<Question> question;
    std::string answer; ///< wiped after use
};

/// Runs a verb on another host as if it ran locally. For a single use.
class Client {
public:
    Client(ClientOptions options, Transport& transport, UserInterface& ui);

    /// Runs until the verb has ended or the user has left; returns the exit status.
    Result<int> run();

private:
    /// The current connection, or the last one.
    struct Connection {
        int preparing = -1;             ///< Transport::prepare()
        std::optional<Channel> channel; ///< while it exists
        frames::Greeting greeting;
        frames::OutputDecoder decoder;
        bool marked = false; ///< the marker has been received
        bool hello = false;  ///< and Hello

        void close()
        {
            preparing = -1;
            channel.reset();
            hello = false;
        }
    };
    /// How the session ends, when it does.
    struct Ending {
        std::optional<frames::Exit> exit;        ///< of the verb
        std::optional<std::uint64_t> input_read; ///< by it, in bytes, if there was input
        std::optional<int> left;                 ///< the user has left, with this status
        std::optional<Error> error;
    };

    // client.cpp
    void watch(std::function<EventLoop::Interest()> interest, void (Client::*handle)());
    void watch_all();
    bool has_stopped() const { return m_ending.left || m_ending.error; }
    Result<int> finish();
    void new_session();
    std::optional<Span> time_to_wait() const;
    void step();
    void drop(Moment at);
    void beat();
    void begin_attempt();
    void connect();
    void not_connected(Attempt attempt, Error error);
    std::string first_bytes();
    bool only_shows_the_rest() const;
    bool is_silent() const;
    void go_past_shared();
    void disconnect();
    void end_of_connection();
    void on_connection();
    void on_input();
    bool has_interrupt(std::string_view typed);
    void on_interrupt();
    void on_signals();
    void on_signal(int number);
    void on_resized();
    void on_network();
    void send_input();
    void state_changed();
    void leave(int status, std::string_view message);
    std::string way_back() const;
    void stop(Error error);
    Error no_answer() const;
    Channel* open_channel() { return is_open() ? &*m_connection.channel : nullptr; }
    bool send_frame(const frames::Frame& frame);
    bool is_open() const { return m_connection.channel && m_connection.hello; }
    bool is_in_front() const { return m_options.start.raw; }

    // client_frames.cpp
    void on_bytes(std::string_view bytes);
    bool pass_marker(std::string_view& bytes, std::string& behind_marker);
    void on_strange(const Error& error);
    void on_frame(frames::Frame&& frame);
    void on_session_frame(const frames::Frame& frame);
    void on_hello(const frames::Hello& hello);
    void replace_session(const frames::Hello& hello);
    bool resume(const frames::Hello& hello);
    void begin(const frames::Hello& hello);
    void on_input_taken(const frames::InputTaken& taken);
    void on_exit(const frames::Exit& exit);
    void return_unread_input();
    void on_output(const frames::OutputBytes& output);
    void on_closed_output(std::size_t stream, int error);
    void nonsense(std::string_view what);
    void live();

    // client_login.cpp
    void needs_user(Error error);
    void take_typed();
    void drop_typed() const;
    void show_login();
    void poll_login();
    void on_question();
    void cancel_login();
    void on_login_keys();
    void on_login_key(const KeyEvent& key);
    void edit_answer(const KeyEvent& key);
    void end_login();

    ClientOptions m_options;
    Transport& m_transport;
    UserInterface& m_ui;
    EventLoop m_loop;
    ReconnectPolicy m_reconnect;
    struct Session {
        std::string id;
        bool started = false;
    } m_session;
    Descriptor m_network; ///< netlink: changes of addresses and routes

    Connection m_connection;
    SshMessages m_ssh;
    std::uint32_t m_connections = 0;
    /// The shared connections of OpenSSH (ControlMaster).
    struct Sharing {
        bool avoided = false; ///< by the next attempt
        bool hung = false;    ///< one has been unresponsive since the connection was lost
    } m_sharing;
    std::optional<Login> m_login;
    EventLoop::Timer m_login_timer; ///< when to check whether a login may succeed now
    bool m_was_live = false;
    struct Outage {
        std::optional<Moment> begun_at;
        std::string failure; ///< of the last attempt, on this machine; empty: it was made
    } m_outage;
    EventLoop::Timer m_state_timer; ///< to show the state again during an outage

    ClientOutput m_output;
    ClientInput m_input;
    off_t m_in_begin; ///< offset of the input before it was read; -1: it is no file
    ClientSignals m_signals;
    KeyReader m_keys; ///< decodes typed keys
    std::optional<frames::Following> m_following;
    ClientForwards m_forwards;
    Ending m_ending;
    std::uint64_t m_beats = 0;
};

} // namespace gpuq::remote
