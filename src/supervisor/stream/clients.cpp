// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/clients.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <poll.h>
#include <type_traits>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_most = 200;
/// Time limit for a client of the socket to send Attach.
constexpr auto k_introduction = 10s;
/// Connections over the network without a proof, at a time.
constexpr int k_most_unknown = 16;
/// Longest frame from such a connection; a challenge and an answer are far shorter.
constexpr std::size_t k_longest_proof = 256;

/// slurmstepd waits for srun to acknowledge each small packet before it sends the next, which takes
/// 40 ms with TCP. So the greeting is sent together with the program's first output, and that
/// output together with the end, if they follow this soon. At a terminal nothing is held back for
/// the end.
constexpr auto k_greeting_waits = 15ms;
constexpr auto k_output_waits = 4ms;

/// Acknowledging each key would send a packet ahead of its echo, and the echo would wait 40 ms for
/// the acknowledgement of that packet (TCP). The client keeps unacknowledged input and is far from
/// its limit.
constexpr std::uint64_t k_typed_untold = 16 << 10;

std::string refusal(std::string why)
{
    return wire::encode(wire::Refused{std::move(why)}).append(wire::k_flush);
}

bool is_news(const std::optional<wire::StdinTaken>& reported, const wire::StdinTaken& now)
{
    const bool near_limit = reported &&
                            now.offset + k_typed_untold > reported->offset + reported->room &&
                            now.offset + now.room > reported->offset + reported->room;
    return !reported || near_limit || now.offset - reported->offset >= k_typed_untold;
}

} // namespace

Clients::Clients(Loop& loop, Backlog& backlog, InputBuffer& input, LogWriter& log,
                 wire::Hello hello, Requests requests, Typing typing)
    : m_loop(loop)
    , m_backlog(backlog)
    , m_input(input)
    , m_log(log)
    , m_hello(std::move(hello))
    , m_requests(std::move(requests))
    , m_typing(typing)
{
    for (Entrance* const entrance : {&m_local, &m_network}) {
        auto& server = entrance->server;
        entrance->watch =
            loop.watch([&server] { return EventLoop::to_read(server ? server->fd() : -1); },
                       [this, &server] { accept(*server); });
    }
}

void Clients::listen_on_network(Server server, std::function<NetworkLogin()> login)
{
    m_network.server = std::move(server);
    m_new_login = std::move(login);
}

void Clients::add_first(Descriptor input, Descriptor output)
{
    set_nonblocking(input.get());
    set_nonblocking(output.get());
    Connection& first =
        add(Connection(m_next_id++, std::move(input), std::move(output), m_loop.now())).connection;
    first.send(m_hello);
    own(first);
    introduce(first);
    greet(first);
    first.hold(m_loop.now() + k_greeting_waits,
               m_typing == Typing::terminals ? Clock::duration{} : k_output_waits);
}

Clients::Member& Clients::add(Connection connection)
{
    Member& member = m_members.emplace_back(Member{std::move(connection)});
    const auto wait_for_input = [this, &member] {
        // If the window is full, the input of an owner stays in its own pipe.
        const bool sends = owns(member) || member.terminal;
        const short events = !sends || m_input.room() > 0 ? POLLIN : 0;
        return Loop::Interest{member.dead ? -1 : member.connection.input(), events};
    };
    member.watches = {
        m_loop.watch(wait_for_input, [this, &member] { read_frames(member); }),
        m_loop.watch(
            [&member] { return EventLoop::to_read(member.connection.relay(), !member.dead); },
            [&member] { member.dead = true; }),
        // transmit() writes.
        m_loop.watch(
            [&member] {
                return EventLoop::to_write(member.connection.output(),
                                           member.connection.has_unsent());
            },
            [] {}),
    };
    return member;
}

void Clients::update()
{
    for (Member& member : m_members) {
        const bool silent =
            !member.connection.role() && m_loop.now() - member.connection.since() > k_introduction;
        member.dead = member.dead || silent;
    }
    bury();
    report_input_taken();
}

void Clients::accept(Server& server)
{
    const bool over_network = server.kind() == Server::Kind::network;
    if (over_network) {
        make_room_for_login();
    }
    if (m_members.size() >= k_most) {
        return server.turn_away(refusal(fmt::format("{} clients are already connected", k_most)));
    }
    const std::string none_left = refusal(
        fmt::format("its supervisor on {} has no file descriptor left (ulimit -n)", m_hello.host));
    if (Descriptor socket = server.accept(none_left)) {
        Member& member = add(Connection(m_next_id++, std::move(socket), m_loop.now()));
        if (over_network) {
            member.login.emplace(m_new_login());
        }
    }
}

/// Anybody can connect to a port: those who have proved nothing yet make room for each other, not
/// for clients.
void Clients::make_room_for_login()
{
    const auto is_unknown = [](const Member& member) {
        return member.login.has_value() && !member.dead;
    };
    if (std::count_if(m_members.begin(), m_members.end(), is_unknown) >= k_most_unknown) {
        std::find_if(m_members.begin(), m_members.end(), is_unknown)->dead = true;
    }
}

void Clients::log_in(Member& member, const wire::Frame& frame)
{
    if (const auto* challenge = std::get_if<wire::Challenge>(&frame)) {
        if (const auto proof = member.login->prove(*challenge)) {
            return member.connection.send(*proof);
        }
    } else if (const auto* answer = std::get_if<wire::Answer>(&frame)) {
        if (member.login->accepts(*answer)) {
            return member.login.reset();
        }
    }
    member.dead = true;
}

void Clients::read_frames(Member& member)
{
    const bool open = member.connection.receive();
    while (!member.dead) {
        const auto next = member.connection.next_frame();
        if (!next) {
            member.dead = true;
        } else if (*next) {
            handle_frame(member, **next);
            continue;
        }
        break;
    }
    member.dead = member.dead || (member.login && member.connection.unread() > k_longest_proof);
    if (open) {
        return;
    }
    lose_owner(member.connection);
    lose_terminal(member);
    member.dead = member.dead || !member.connection.outlives_input();
}

void Clients::handle_frame(Member& member, const wire::Frame& frame)
{
    if (member.login) {
        return log_in(member, frame);
    }
    std::visit(
        [&](const auto& each) {
            using Kind = std::decay_t<decltype(each)>;
            const bool known = member.connection.role().has_value();
            const bool guard = member.connection.role() == wire::Role::guard;
            if constexpr (std::is_same_v<Kind, wire::Attach>) {
                if (!known) {
                    attach(member, each);
                }
            } else if constexpr (std::is_same_v<Kind, wire::Report>) {
                if (m_requests.report) {
                    m_requests.report(each.text);
                }
                member.dead = member.dead || !known;
            } else if (!known || guard) {
                member.dead = member.dead || !known;
            } else if constexpr (std::is_same_v<Kind, wire::Stdin>) {
                handle_input(member, each);
            } else if constexpr (std::is_same_v<Kind, wire::StdinEnd>) {
                member.dead =
                    m_typing == Typing::one_owner && owns(member) && !m_input.end(each.offset);
            } else if constexpr (std::is_same_v<Kind, wire::Signal>) {
                take_signal(member, each);
            } else if constexpr (std::is_same_v<Kind, wire::Stop>) {
                m_requests.stop(each.by);
            } else if constexpr (std::is_same_v<Kind, wire::OutputTaken>) {
                member.connection.taken(each, m_loop.now());
            } else if constexpr (std::is_same_v<Kind, wire::Bye>) {
                member.connection.leave();
                lose_owner(member.connection);
                forget_client(member);
                lose_terminal(member);
            } else if constexpr (std::is_same_v<Kind, wire::Terminal>) {
                add_terminal(member, each);
            } else if constexpr (std::is_same_v<Kind, wire::Take>) {
                take(member, each);
            }
        },
        frame);
}

void Clients::handle_input(Member& member, const wire::Stdin& frame)
{
    if (m_typing == Typing::terminals) {
        type(member, frame);
    } else if (owns(member)) {
        member.dead = !m_input.take(frame.offset, frame.bytes);
    }
}

/// Bytes that a client sends again after a change of connection are typed only once.
void Clients::type(Member& member, const wire::Stdin& frame)
{
    if (!member.terminal) {
        return;
    }
    std::uint64_t& typed = m_typed[member.terminal->client];
    if (frame.offset > typed) {
        member.dead = true;
        return;
    }
    const std::uint64_t known = std::min<std::uint64_t>(typed - frame.offset, frame.bytes.size());
    const std::string_view news = std::string_view(frame.bytes).substr(known);
    typed += news.size();
    m_input.take(m_input.taken(), news);
}

/// Signals that a client sends again after a change of connection are delivered only once.
void Clients::take_signal(Member& member, const wire::Signal& frame)
{
    member.signals_of = frame.client;
    std::uint64_t& taken = m_signals[frame.client];
    if (frame.place > taken) {
        taken = frame.place;
        m_requests.signal(frame.number);
    }
    member.connection.send(wire::SignalTaken{taken});
}

/// Called for a client that does not come back.
void Clients::forget_client(const Member& member)
{
    if (member.terminal) {
        m_typed.erase(member.terminal->client);
    }
    if (member.signals_of) {
        m_signals.erase(*member.signals_of);
    }
}

void Clients::add_terminal(Member& member, const wire::Terminal& frame)
{
    if (m_typing != Typing::terminals) {
        return;
    }
    member.terminal = frame;
    member.turn = ++m_turn;
    if (frame.redraw) {
        member.connection.send(wire::Screen{m_requests.screen(frame.size)});
    }
    m_requests.resize(frame.size, frame.redraw);
}

/// The terminal's size is that of the remaining client that attached or changed size last.
void Clients::lose_terminal(Member& member)
{
    if (!std::exchange(member.terminal, std::nullopt)) {
        return;
    }
    const Member* latest = nullptr;
    for (const Member& other : m_members) {
        if (other.terminal && !other.dead && (!latest || other.turn > latest->turn)) {
            latest = &other;
        }
    }
    if (latest && latest->turn < member.turn) {
        m_requests.resize(latest->terminal->size, false);
    }
}

bool Clients::has_terminal() const
{
    return std::any_of(m_members.begin(), m_members.end(),
                       [](const Member& member) { return member.terminal.has_value(); });
}

/// The other clients leave when they receive Taken. A client that feeds the program through a pipe
/// stays, because its end would be the end of the run.
void Clients::take(const Member& taker, const wire::Take& frame)
{
    for (Member& member : m_members) {
        const auto role = member.connection.role();
        const bool feeds =
            m_typing == Typing::one_owner && owns(member) && !m_input.ended() && !m_input.closed();
        if (&member != &taker && role && *role != wire::Role::guard && !feeds) {
            member.connection.send(wire::Taken{frame.by});
            lose_terminal(member);
        }
    }
}

void Clients::attach(Member& member, const wire::Attach& frame)
{
    member.connection.send(m_hello); // not earlier: the destination was unknown until now
    member.connection.attach(frame, m_backlog);
    if (frame.role == wire::Role::owner) {
        own(member.connection);
    }
    introduce(member.connection);
    if (frame.role != wire::Role::guard) {
        greet(member.connection);
    }
}

/// The last client to attach owns the input: a relay takes over from the srun that started the run.
/// The previous owner on the step's own streams is dropped, because a step whose srun was killed
/// shows no end of its streams. Other previous owners stay as viewers.
void Clients::own(Connection& connection)
{
    for (Member& member : m_members) {
        member.dead = member.dead || (owns(member) && member.connection.id() != connection.id() &&
                                      member.connection.outlives_input());
    }
    m_owner = connection.id();
    m_had_owner = true;
    m_without_owner.reset();
    if (m_typing == Typing::one_owner) {
        connection.send(wire::StdinTaken{m_input.taken(), m_input.room()});
    }
}

void Clients::introduce(Connection& connection)
{
    if (m_started) {
        connection.send(wire::Started{*m_started});
    }
    if (m_ended) {
        connection.send_last(*m_ended);
    }
}

void Clients::greet(Connection& connection)
{
    if (const std::string text = std::exchange(m_greeting, {}); !text.empty()) {
        connection.send(wire::Note{text});
    }
}

void Clients::lose_owner(const Connection& connection)
{
    if (m_owner != connection.id()) {
        return;
    }
    m_owner.reset();
    if (!connection.left()) {
        m_without_owner = m_loop.now();
    } else if (m_typing == Typing::one_owner && !m_input.ended() && !m_input.closed()) {
        m_without_owner = Clock::time_point{}; // do not wait: no other client has the rest of the
                                               // input
    }
}

void Clients::bury()
{
    for (Member& member : m_members) {
        if (member.dead) {
            lose_owner(member.connection);
            lose_terminal(member);
        }
    }
    std::erase_if(m_members, [](const Member& member) { return member.dead; });
}

void Clients::report_input_taken()
{
    for (Member& member : m_members) {
        const bool counts =
            m_typing == Typing::terminals ? member.terminal.has_value() : owns(member);
        if (!counts) {
            continue;
        }
        const wire::StdinTaken taken{
            member.terminal ? m_typed[member.terminal->client] : m_input.taken(), m_input.room()};
        if (member.terminal ? is_news(member.reported, taken) : member.reported != taken) {
            member.connection.send(taken);
            member.reported = taken;
        }
    }
}

void Clients::history_came(LogWriter::Answer answer)
{
    for (Member& member : m_members) {
        if (member.connection.id() == answer.asker) {
            member.connection.history_came(answer.bookmark, std::move(answer.pieces), m_backlog);
        }
    }
}

void Clients::transmit()
{
    for (Member& member : m_members) {
        member.dead = member.dead || !member.connection.transmit(m_backlog, m_loop.now());
        if (member.connection.wants_history()) {
            member.connection.history_asked();
            m_log.request_history(member.connection.id(), member.connection.bookmark(),
                                  m_backlog.begin());
        }
        if (const auto until = member.connection.held_until()) {
            m_loop.wake_at(*until);
        }
    }
    bury();
}

void Clients::started(int pid)
{
    m_started = pid;
    for (Member& member : m_members) {
        if (member.connection.role()) {
            member.connection.send(wire::Started{pid});
        }
    }
}

void Clients::note(const std::string& text)
{
    for (Member& member : m_members) {
        if (member.connection.role()) {
            member.connection.send(wire::Note{text});
        }
    }
}

void Clients::ended(const wire::Ended& ended)
{
    m_ended = ended;
    for (Member& member : m_members) {
        if (member.connection.role()) {
            member.connection.send_last(ended);
        }
    }
}

std::uint64_t Clients::needed(std::chrono::milliseconds stalled) const
{
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (const Member& member : m_members) {
        const auto role = member.connection.role();
        if (role && *role != wire::Role::guard &&
            !member.connection.stalled(m_loop.now(), stalled)) {
            first = std::min(first, member.connection.needs(m_backlog));
        }
    }
    return first;
}

bool Clients::all_notified(std::chrono::milliseconds stalled)
{
    for (Member& member : m_members) {
        member.dead = member.connection.stalled(m_loop.now(), stalled);
    }
    bury();
    return std::all_of(m_members.begin(), m_members.end(), [](const Member& member) {
        return !member.connection.role() || member.connection.all_sent();
    });
}

bool Clients::all_gone() const
{
    return std::all_of(m_members.begin(), m_members.end(), [](const Member& member) {
        const Connection& connection = member.connection;
        return !connection.role() || *connection.role() == wire::Role::guard || connection.left() ||
               (connection.input_ended() && connection.drained());
    });
}

} // namespace gpuq::supervisor
