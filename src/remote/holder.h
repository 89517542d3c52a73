// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "remote/backlog.h"
#include "remote/channel.h"
#include "remote/lifeline.h"
#include "remote/run_door.h"
#include "remote/verb_process.h"

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::remote {

/// A connection handed over by a front process (serve.h).
struct Handed {
    Descriptor in, out;       ///< the streams that sshd gave to the front
    Descriptor front;         ///< closed when the front exits, and closing it makes the front exit
    std::string read;         ///< bytes already read from `in`
    std::size_t repeated = 0; ///< number of bytes at the start of `in` that are already in `read`
};
/// Returns `bytes` without a prefix that is a repetition; reduces `repeated` by its size.
std::string_view without_repeated(std::string_view bytes, std::size_t& repeated);

/// Identifies this side to the client.
struct Identity {
    std::string version;
    std::string host;
};

/// Runs one verb for a client that may be disconnected at any time, and keeps output that it has
/// not received yet. Runs in a process with its own session that holds no descriptor of the login.
class Holder {
public:
    /// `program`: executable that runs the verb. `accept` receives further connections from
    /// `listener`.
    Holder(std::string program, Identity identity, Descriptor listener,
           std::function<std::optional<Handed>(int listener)> accept);

    /// Runs until the verb has ended and the client needs nothing more. Uses all signals of the
    /// process.
    void run(Handed first);

private:
    void wait();
    void take(Handed handed);
    bool is_late(const Handed& handed) const;
    void drop();
    void on_channel();
    void on_frame(frames::Frame&& frame);
    void on_open(const frames::Open& open);
    void on_start(const frames::Start& start);
    void on_taken(const frames::Taken& taken);
    void on_input(const frames::Input& input);
    void on_resize(const frames::Resize& resize);
    void on_dial(const frames::Dial& dial);
    void on_door();
    void to_door(std::uint32_t stream, const frames::Frame& frame);
    void from_door(std::uint32_t stream, const frames::Frame& frame);
    void end_streams(const std::string& why);
    void refuse_stream(std::uint32_t stream, std::string why);
    void on_output(Stream stream);
    void on_facts();
    void on_fact(std::string_view line);
    void place_mark(Moment now);
    void answer_mark();
    void on_children();
    void on_timers(Moment now);
    void write_input();
    void send_output();
    void say_taken();
    void hang_up(Moment now);
    void on_signal(const frames::Signal& signal);
    void signal_verb(int number) const;
    void refuse(Error error);
    frames::Hello hello() const;
    std::uint64_t room() const { return frames::k_input_room - m_input.size(); }
    bool keeps_all_it_may() const;
    bool takes_output() const;
    bool confirm(std::size_t stream, std::uint64_t offset);
    int descriptor_of(Stream stream) const;
    bool is_over() const;
    std::chrono::seconds patience() const;
    int milliseconds_to_wait(Moment now) const;

    std::string m_program;
    Identity m_identity;
    Descriptor m_listener;
    std::function<std::optional<Handed>(int)> m_accept;
    Descriptor m_signals;

    std::optional<Channel> m_channel;
    Descriptor m_front;
    frames::Decoder m_decoder;
    bool m_opened = false;
    std::size_t m_repeated = 0;     ///< Handed::repeated
    std::uint32_t m_connection = 0; ///< Open::connection of the newest connection
    Moment m_heard_at;
    Span m_silence = std::chrono::seconds{20};
    std::optional<Moment> m_alone_since;
    bool m_left = false; ///< the client has sent Bye
    bool m_exit_sent = false;

    std::optional<RunDoor> m_door; ///< set if the session has forwards
    frames::Decoder m_door_decoder;
    /// Which sides of a stream have sent StreamEnd.
    struct Ends {
        bool client = false, run = false;
    };
    std::map<std::uint32_t, Ends> m_streams; ///< streams of --forward between client and dialer

    std::optional<VerbProcess> m_verb;
    bool m_failed = false;    ///< Start did not result in a verb
    bool m_brief = false;     ///< Start::brief
    bool m_confirmed = false; ///< the client has sent a frame after Start
    Stream m_terminal_is = Stream::out;
    bool m_terminal_raw = false;
    std::chrono::seconds m_patience{0};
    std::optional<int> m_status;
    std::array<bool, 2> m_drained{};
    std::array<Backlog, 2> m_output;
    std::size_t m_sending = 0; ///< the stream whose bytes the channel may have borrowed
    std::string m_input;       ///< waiting to be written to the verb
    std::uint64_t m_input_end = 0;
    std::uint64_t m_said_taken = 0, m_said_room = frames::k_input_room;
    std::optional<Moment> m_say_taken_at;
    bool m_input_over = false; ///< InputEnd received
    bool m_input_closed = false;
    std::uint64_t m_signals_taken = 0;
    std::string m_facts;
    std::optional<frames::Following> m_following;
    std::optional<frames::SshTarget> m_ssh_target;
    std::uint64_t m_own = 0; ///< bytes of stderr that are gpuq's own messages
    /// The first `marks` marks are reached when output is shown up to `ends`.
    struct Place {
        std::uint64_t marks = 0;
        std::array<std::uint64_t, 2> ends{};
    };
    std::uint64_t m_marks = 0;
    std::optional<Moment> m_place_at; ///< when to place the newest mark: all output before it must
                                      ///< have been read
    std::optional<Place> m_place;     ///< answered when the output before it has been shown
    std::optional<Moment> m_kill_at;
    int m_hang_ups = 0;
};

} // namespace gpuq::remote
