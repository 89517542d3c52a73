// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
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

/// A connection that a front (serve.h) has handed over.
struct Handed {
    Descriptor in, out;       ///< what ssh gave to the front
    Descriptor front;         ///< ends with the front; the front ends with it
    std::string read;         ///< already, from `in`
    std::size_t repeated = 0; ///< so many of the next bytes of `in` were in `read`
};
/// `bytes` without what is repeated, which becomes less.
std::string_view without_repeated(std::string_view bytes, std::size_t& repeated);

/// Who answers.
struct Identity {
    std::string version;
    std::string host;
};

/// Runs one verb for a client that may be cut off at any time, and keeps what it has not got yet.
/// A process of its own session, without a descriptor of the login's.
class Holder {
public:
    /// `program`: what the verb is a verb of. `listener` brings further connections by `accept`.
    Holder(std::string program, Identity identity, Descriptor listener,
           std::function<std::optional<Handed>(int listener)> accept);

    /// Until the verb has ended and nobody is to hear of it any more. All signals of the process
    /// are its own meanwhile.
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
    std::uint32_t m_connection = 0; ///< Open::connection of the newest
    Moment m_heard_at;
    Span m_silence = std::chrono::seconds{20};
    std::optional<Moment> m_alone_since;
    bool m_left = false; ///< the client has said Bye
    bool m_exit_sent = false;

    std::optional<RunDoor> m_door; ///< of a session with forwards
    frames::Decoder m_door_decoder;
    /// Which sides of a stream have said StreamEnd.
    struct Ends {
        bool client = false, run = false;
    };
    std::map<std::uint32_t, Ends> m_streams; ///< of --forward, between client and dialer

    std::optional<VerbProcess> m_verb;
    bool m_failed = false;    ///< no verb came of Start
    bool m_brief = false;     ///< Start::brief
    bool m_confirmed = false; ///< the client has sent something after Start
    Stream m_terminal_is = Stream::out;
    bool m_terminal_raw = false;
    std::chrono::seconds m_patience{0};
    std::optional<int> m_status;
    std::array<bool, 2> m_drained{};
    std::array<Backlog, 2> m_output;
    std::size_t m_sending = 0; ///< whose bytes the channel may have borrowed
    std::string m_input;       ///< on its way to the verb
    std::uint64_t m_input_end = 0;
    std::uint64_t m_said_taken = 0, m_said_room = frames::k_input_room;
    std::optional<Moment> m_say_taken_at;
    bool m_input_over = false; ///< InputEnd has come
    bool m_input_closed = false;
    std::uint64_t m_signals_taken = 0;
    std::string m_facts;
    std::optional<frames::Following> m_following;
    std::optional<frames::SshTarget> m_ssh_target;
    std::uint64_t m_own = 0; ///< bytes of stderr that are gpuq's own
    /// So many marks stand where the output ends at.
    struct Place {
        std::uint64_t marks = 0;
        std::array<std::uint64_t, 2> ends{};
    };
    std::uint64_t m_marks = 0;
    std::optional<Moment> m_place_at; ///< the newest one, when all before it has been read
    std::optional<Place> m_place;     ///< to be answered when that has been shown
    std::optional<Moment> m_kill_at;
    int m_hang_ups = 0;
};

} // namespace gpuq::remote
