// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/holder.h"

#include "remote/peer_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <span>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

/// The session process on the login host: one thread with one poll loop (wait()).
///
/// The verb is started once, by the first Start. Connections come and go: a new one replaces the
/// current one, unless Open::connection shows that it is older. Output stays in m_output until the
/// client has confirmed it; when k_output_room bytes are kept, the verb's output is no longer read.
///
/// Without a connection for patience(), or after Bye, the verb is hung up: HUP, then TERM, then
/// KILL. The process ends when the verb has ended and the client has everything or has been given
/// up (m_left), or when there is no verb and no connection. With --forward, the frames of streams
/// are passed between the client and a RunDoor.
namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr Span k_least_silence = 20s;
constexpr auto k_most_patience = std::chrono::hours{24 * 7};
constexpr auto k_for_the_end = 10min;
constexpr auto k_for_a_brief_one = 3s; ///< for one whose connection was cut off at its end
constexpr Span k_after_hang_up = 10s;
/// Time after a write to a terminal until all of it can be read at the other end.
constexpr Span k_until_readable = 20ms;
constexpr Span k_after_term = 5s;
constexpr std::size_t k_most_facts = 4096;
constexpr Span k_say_within = 100ms;
constexpr ssize_t k_little = 1024; ///< bytes of a read; a terminal returns at most 4 KiB
/// Limit of queued frames for a client that does not read.
constexpr std::size_t k_most_waiting = 4 << 20;
constexpr char k_end_of_file = '\4';

Moment now()
{
    return std::chrono::steady_clock::now();
}

/// The --forward stream that a frame belongs to.
std::optional<std::uint32_t> stream_of(const frames::Frame& frame)
{
    return std::visit(
        [](const auto& each) -> std::optional<std::uint32_t> {
            using Kind = std::decay_t<decltype(each)>;
            if constexpr (std::is_same_v<Kind, frames::StreamBytes> ||
                          std::is_same_v<Kind, frames::StreamTaken> ||
                          std::is_same_v<Kind, frames::StreamEnd> ||
                          std::is_same_v<Kind, frames::StreamGone>) {
                return each.stream;
            }
            return std::nullopt;
        },
        frame);
}

} // namespace

Holder::Holder(std::string program, Identity identity, Descriptor listener,
               std::function<std::optional<Handed>(int listener)> accept)
    : m_program(std::move(program))
    , m_identity(std::move(identity))
    , m_listener(std::move(listener))
    , m_accept(std::move(accept))
{
}

void Holder::run(Handed first)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &children, nullptr);
    m_signals.reset(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    take(std::move(first));
    while (!is_over()) {
        wait();
        on_timers(now());
    }
    if (m_channel) {
        m_channel->flush(1000);
    }
}

/// True when nothing runs and no client can still fetch data.
bool Holder::is_over() const
{
    if (!m_verb) {
        return m_failed || !m_channel;
    }
    return m_status && m_left;
}

std::string_view without_repeated(std::string_view bytes, std::size_t& repeated)
{
    const std::size_t count = std::min(repeated, bytes.size());
    repeated -= count;
    return bytes.substr(count);
}

/// A connection that was delayed, e.g. in a frozen shared connection, must not replace a newer one.
bool Holder::is_late(const Handed& handed) const
{
    frames::Decoder decoder;
    decoder.feed(handed.read);
    const auto first = decoder.next();
    const auto* const open = first && *first ? std::get_if<frames::Open>(&**first) : nullptr;
    return open != nullptr && open->connection < m_connection;
}

void Holder::take(Handed handed)
{
    if (is_late(handed)) {
        return;
    }
    drop();
    m_repeated = handed.repeated;
    m_channel.emplace(std::move(handed.in), std::move(handed.out));
    m_front = std::move(handed.front);
    m_decoder = {};
    m_decoder.feed(handed.read);
    m_alone_since.reset();
    m_heard_at = now();
    on_channel();
}

void Holder::drop()
{
    m_channel.reset();
    m_front.reset();
    if (Channel* const door = m_door ? m_door->channel() : nullptr) {
        for (const auto& [stream, ends] : std::exchange(m_streams, {})) {
            door->send(frames::StreamGone{stream, ""});
        }
    }
    m_opened = false;
    m_exit_sent = false;
    if (!m_alone_since) {
        m_alone_since = now();
    }
}

int Holder::descriptor_of(Stream stream) const
{
    const Descriptor& pipe = stream == Stream::out ? m_verb->out : m_verb->err;
    if (pipe) {
        return pipe.get();
    }
    return m_verb->terminal && stream == m_terminal_is ? m_verb->terminal.get() : -1;
}

bool Holder::keeps_all_it_may() const
{
    return m_output[0].size() + m_output[1].size() >= frames::k_output_room;
}

void Holder::wait()
{
    std::vector<pollfd> waits;
    const auto listen = [&](int descriptor, short events) {
        waits.push_back({events == 0 ? -1 : descriptor, events, 0});
        return waits.size() - 1;
    };
    const auto as = [](bool wanted, short events) { return wanted ? events : short{0}; };
    const std::size_t listener = listen(m_listener.get(), POLLIN);
    const std::size_t signals = listen(m_signals.get(), POLLIN);
    const std::size_t channel_in = listen(m_channel ? m_channel->input() : -1, POLLIN);
    const std::size_t channel_out = listen(m_channel ? m_channel->output() : -1,
                                           as(m_channel && m_channel->waiting() > 0, POLLOUT));
    const std::size_t front = listen(m_front ? m_front.get() : -1, POLLIN);
    std::array<std::size_t, 2> streams{};
    std::size_t input = listen(-1, 0), facts = input;
    if (m_verb) {
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
            streams[i] = listen(descriptor_of(static_cast<Stream>(i)),
                                as(!keeps_all_it_may() && !m_drained[i], POLLIN));
        }
        const int there = m_verb->input ? m_verb->input.get() : m_verb->terminal.get();
        input = listen(there, as(!m_input.empty() && !m_input_closed, POLLOUT));
        facts = listen(m_verb->facts.get(), POLLIN);
    }
    // If the client does not read, leave data from the run in its channel.
    Channel* const run = m_door ? m_door->channel() : nullptr;
    const bool takes = !m_channel || !m_channel->is_full();
    const std::size_t door_in = listen(run != nullptr ? run->input() : -1, as(takes, POLLIN));
    const std::size_t door_out = listen(run != nullptr ? run->output() : -1,
                                        as(run != nullptr && run->waiting() > 0, POLLOUT));
    if (::poll(waits.data(), waits.size(), milliseconds_to_wait(now())) <= 0) {
        return;
    }
    const auto is_ready = [&](std::size_t i) { return i != 0 && waits[i].revents != 0; };
    if (is_ready(signals)) {
        on_children();
    }
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        if (is_ready(streams[i])) {
            on_output(static_cast<Stream>(i));
        }
    }
    if (is_ready(facts)) {
        on_facts();
    }
    if (is_ready(input)) {
        write_input();
    }
    if (is_ready(door_in) || (is_ready(door_out) && !run->write_some())) {
        on_door();
    }
    if (is_ready(front)) {
        drop();
    }
    if (is_ready(channel_in) && m_channel) {
        if (const auto bytes = m_channel->read_some()) {
            m_decoder.feed(without_repeated(*bytes, m_repeated));
            on_channel();
        } else {
            drop();
        }
    }
    if (is_ready(channel_out) && m_channel && !m_channel->write_some()) {
        drop();
    }
    send_output();
    if (waits[listener].revents != 0) {
        if (auto handed = m_accept(m_listener.get())) {
            take(*std::move(handed));
        }
    }
}

void Holder::on_channel()
{
    m_heard_at = now();
    while (m_channel) {
        auto frame = m_decoder.next();
        if (!frame) {
            return refuse(std::move(frame).error());
        }
        if (!*frame) {
            break;
        }
        on_frame(std::move(**frame));
        if (m_channel && m_channel->waiting() > k_most_waiting) {
            return drop();
        }
    }
    send_output();
}

void Holder::on_frame(frames::Frame&& frame)
{
    if (const auto fault = fault_in(frame, Sender::client)) {
        return refuse(fail(Error::Kind::internal, std::string(*fault)));
    }
    if (const auto* open = std::get_if<frames::Open>(&frame)) {
        return on_open(*open);
    }
    if (!m_opened) {
        return refuse(fail(Error::Kind::internal, "expected Open first"));
    }
    if (const auto* start = std::get_if<frames::Start>(&frame)) {
        return on_start(*start);
    }
    m_confirmed = true;
    if (const auto* taken = std::get_if<frames::Taken>(&frame)) {
        on_taken(*taken);
    } else if (const auto* input = std::get_if<frames::Input>(&frame)) {
        on_input(*input);
    } else if (const auto* end = std::get_if<frames::InputEnd>(&frame)) {
        m_input_over = m_input_over || end->offset == m_input_end;
        write_input();
    } else if (const auto* resize = std::get_if<frames::Resize>(&frame)) {
        on_resize(*resize);
    } else if (const auto* signal = std::get_if<frames::Signal>(&frame)) {
        on_signal(*signal);
    } else if (const auto* beat = std::get_if<frames::Beat>(&frame)) {
        m_channel->send(*beat);
    } else if (const auto* dial = std::get_if<frames::Dial>(&frame)) {
        on_dial(*dial);
    } else if (const auto stream = stream_of(frame)) {
        to_door(*stream, frame);
    } else if (std::holds_alternative<frames::Bye>(frame)) {
        m_left = true;
        drop();
        if (!m_status) {
            hang_up(now());
        }
    }
}

frames::Hello Holder::hello() const
{
    return {frames::k_version,  m_identity.version, m_identity.host,
            m_verb.has_value(), m_input_end,        room(),
            m_signals_taken};
}

void Holder::on_open(const frames::Open& open)
{
    if (m_opened) {
        return refuse(fail(Error::Kind::internal, "duplicate Open"));
    }
    m_opened = true;
    m_connection = open.connection;
    m_silence = std::max<Span>(k_least_silence, 4 * open.beat);
    if (!m_verb) { // the front has already sent Hello; Start follows
        return;
    }
    m_channel->send(hello());
    if (!m_output[0].send_from(open.out) || !m_output[1].send_from(open.err)) {
        return refuse(fail(Error::Kind::internal, "the requested output is no longer available"));
    }
    (void)m_output[0].confirm(open.out);
    (void)m_output[1].confirm(open.err);
    m_said_taken = m_input_end;
    m_said_room = room();
    m_say_taken_at.reset();
    if (m_following) {
        m_channel->send(*m_following);
    }
    if (m_ssh_target) {
        m_channel->send(*m_ssh_target);
    }
}

void Holder::on_start(const frames::Start& start)
{
    if (m_verb) {
        return; // only once per session
    }
    auto verb = start_verb(m_program, start);
    if (!verb) {
        m_failed = true;
        return refuse(std::move(verb).error());
    }
    m_verb = std::move(*verb);
    if (!start.forwards.empty()) {
        m_door.emplace(m_program, start);
    }
    m_terminal_is = start.terminals[1] ? Stream::out : Stream::err;
    m_terminal_raw = start.raw;
    m_input_closed = start.no_input;
    m_patience = std::min<std::chrono::seconds>(start.patience, k_most_patience);
    m_brief = start.brief;
    m_confirmed = !start.brief;
    for (const Descriptor* each :
         {&m_verb->terminal, &m_verb->input, &m_verb->out, &m_verb->err, &m_verb->facts}) {
        if (*each) {
            set_nonblocking(each->get());
        }
    }
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        m_drained[i] = descriptor_of(static_cast<Stream>(i)) < 0;
    }
}

void Holder::on_taken(const frames::Taken& taken)
{
    if (!confirm(0, taken.out) || !confirm(1, taken.err)) {
        return refuse(fail(Error::Kind::internal, "acknowledged output that was not sent"));
    }
    answer_mark();
}

/// The client can confirm only bytes that have left the channel, which may still refer to the
/// others.
bool Holder::confirm(std::size_t stream, std::uint64_t offset)
{
    const std::size_t borrowed = stream == m_sending && m_channel ? m_channel->borrowed() : 0;
    return offset <= m_output[stream].sent() - borrowed && m_output[stream].confirm(offset);
}

void Holder::on_input(const frames::Input& input)
{
    const std::uint64_t end = input.offset + input.bytes.size();
    if (!m_verb || input.offset > m_input_end || end < input.offset) {
        return refuse(fail(Error::Kind::internal, "input at an unexpected offset"));
    }
    if (end <= m_input_end) {
        return; // already received
    }
    const auto fresh =
        std::string_view(input.bytes).substr(static_cast<std::size_t>(m_input_end - input.offset));
    if (fresh.size() > room()) {
        return refuse(fail(Error::Kind::internal, "input exceeds its window"));
    }
    m_input_end = end;
    if (!m_input_closed && !m_input_over) {
        m_input += fresh;
    }
    write_input();
    say_taken();
}

/// Confirmations are batched: one per key press would wake up every process on the path before the
/// echo does.
void Holder::say_taken()
{
    constexpr std::uint64_t k_worth_telling = 64 << 10;
    const bool now_due = m_say_taken_at && now() >= *m_say_taken_at;
    if (m_said_taken != m_input_end && !m_say_taken_at) {
        m_say_taken_at = now() + k_say_within;
    }
    if (m_channel && m_opened &&
        (now_due || m_input_end - m_said_taken >= k_worth_telling ||
         room() >= m_said_room + k_worth_telling)) {
        m_say_taken_at.reset();
        m_said_taken = m_input_end;
        m_said_room = room();
        m_channel->send(frames::InputTaken{m_said_taken, m_said_room});
        (void)m_channel->write_some();
    }
}

void Holder::write_input()
{
    if (!m_verb || m_input_closed) {
        return;
    }
    const int there = m_verb->input ? m_verb->input.get() : m_verb->terminal.get();
    while (!m_input.empty()) {
        const ssize_t count = ::write(there, m_input.data(), m_input.size());
        if (count > 0) {
            m_input.erase(0, static_cast<std::size_t>(count));
        } else if (count < 0 && errno == EINTR) {
            continue;
        } else if (count < 0 && errno == EAGAIN) {
            break;
        } else { // the verb has closed its input
            m_input.clear();
            m_input_closed = true;
            m_verb->input.reset();
        }
    }
    if (m_input.empty() && m_input_over && !m_input_closed) {
        m_input_closed = true;
        if (m_verb->input) {
            m_verb->input.reset();
        } else if (!m_terminal_raw) {
            (void)!::write(there, &k_end_of_file, 1);
        }
    }
    say_taken();
}

void Holder::on_resize(const frames::Resize& resize)
{
    if (!m_verb || !m_verb->terminal) {
        return;
    }
    winsize size{};
    size.ws_row = static_cast<unsigned short>(resize.size.rows);
    size.ws_col = static_cast<unsigned short>(resize.size.columns);
    if (resize.redraw && size.ws_row > 1) {
        // Programs redraw only when the size has changed.
        winsize other = size;
        other.ws_row -= 1;
        ::ioctl(m_verb->terminal.get(), TIOCSWINSZ, &other);
        ::poll(nullptr, 0, 60);
    }
    ::ioctl(m_verb->terminal.get(), TIOCSWINSZ, &size);
}

void Holder::on_dial(const frames::Dial& dial)
{
    if (m_streams.contains(dial.stream)) {
        return refuse(fail(Error::Kind::internal, "duplicate stream"));
    }
    if (!m_door || dial.forward >= m_door->forwards() || !m_following) {
        return refuse_stream(dial.stream, "there is no run to connect to");
    }
    if (m_streams.size() >= frames::k_most_streams) {
        return refuse_stream(dial.stream, "too many connections at once");
    }
    const auto opened = m_door->open(*m_following);
    if (!opened) {
        return refuse_stream(dial.stream, opened.error().text);
    }
    if (*opened) {
        end_streams("");
        m_door_decoder = {};
    }
    m_streams.try_emplace(dial.stream);
    m_door->channel()->send(dial);
    (void)m_door->channel()->write_some();
}

void Holder::refuse_stream(std::uint32_t stream, std::string why)
{
    if (m_channel) {
        m_channel->send(frames::StreamGone{stream, std::move(why)});
    }
}

/// Closes all open streams.
void Holder::end_streams(const std::string& why)
{
    for (const auto& [stream, ends] : std::exchange(m_streams, {})) {
        refuse_stream(stream, why);
    }
}

/// Frames for a stream already closed on this side are ignored.
void Holder::to_door(std::uint32_t stream, const frames::Frame& frame)
{
    const auto found = m_streams.find(stream);
    Channel* const door = m_door ? m_door->channel() : nullptr;
    if (found == m_streams.end() || door == nullptr) {
        return;
    }
    found->second.client = found->second.client || std::holds_alternative<frames::StreamEnd>(frame);
    const bool over = found->second.client && found->second.run;
    if (over || std::holds_alternative<frames::StreamGone>(frame)) {
        m_streams.erase(found);
    }
    door->send(frame);
    (void)door->write_some(); // its end is detected by reading
}

void Holder::from_door(std::uint32_t stream, const frames::Frame& frame)
{
    const auto found = m_streams.find(stream);
    if (found == m_streams.end()) {
        return;
    }
    found->second.run = found->second.run || std::holds_alternative<frames::StreamEnd>(frame);
    const bool over = found->second.client && found->second.run;
    if (over || std::holds_alternative<frames::StreamGone>(frame)) {
        m_streams.erase(found);
    }
    if (m_channel) {
        m_channel->send(frame);
    }
}

/// Data from the run, or the end of its channel.
void Holder::on_door()
{
    const auto bytes = m_door->channel()->read_some();
    m_door_decoder.feed(bytes.value_or(""));
    bool open = bytes.has_value();
    while (open) {
        auto frame = m_door_decoder.next();
        open = static_cast<bool>(frame);
        if (!frame || !*frame) {
            break;
        }
        m_door->answered(); // the channel works
        if (const auto stream = stream_of(**frame)) {
            from_door(*stream, **frame);
        }
    }
    if (!open) {
        end_streams(m_door->close());
    }
}

void Holder::on_output(Stream stream)
{
    const auto i = static_cast<std::size_t>(stream);
    while (!keeps_all_it_may()) {
        const std::span<char> room = m_output[i].room();
        const ssize_t count = ::read(descriptor_of(stream), room.data(),
                                     std::min<std::size_t>(room.size(), wire::k_piece));
        if (count > 0) {
            m_output[i].grew(static_cast<std::size_t>(count));
            // Send before reading more; and a short read means that nothing more is available.
            if (m_output[i].end() - m_output[i].sent() >= wire::k_piece ||
                (count < k_little && !m_status)) {
                return;
            }
        } else if (count < 0 && errno == EINTR) {
            continue;
        } else {
            // A terminal reports EIO when the verb has closed it. After the verb has ended, do not
            // wait for background processes that still write.
            m_drained[i] = count == 0 || errno != EAGAIN || m_status.has_value();
            return;
        }
    }
}

void Holder::on_facts()
{
    std::array<char, 1024> buffer;
    const ssize_t count = ::read(m_verb->facts.get(), buffer.data(), buffer.size());
    if (count <= 0) {
        if (count == 0 || errno != EAGAIN) {
            m_verb->facts.reset();
        }
        return;
    }
    m_facts.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = m_facts.find('\n')) != std::string::npos;) {
        on_fact(std::string_view(m_facts).substr(0, end));
        m_facts.erase(0, end + 1);
    }
    if (m_facts.size() > k_most_facts) {
        m_facts.clear();
    }
}

void Holder::on_fact(std::string_view line)
{
    if (line == k_mark) {
        m_marks += 1;
        if (!m_place_at) {
            m_place_at = now() + k_until_readable;
        }
        return;
    }
    if (auto target = ssh_target_from(line)) {
        m_ssh_target = std::move(target);
        if (m_channel && m_opened) {
            m_channel->send(*m_ssh_target);
        }
        return;
    }
    if (const auto own = own_from(line)) {
        m_own += *own;
        if (!m_following) {
            return;
        }
        m_following->err -= *own; // these bytes are not part of the run's stderr
    } else if (const auto following = following_from(line)) {
        m_following = *following;
        m_following->err -= m_own;
    } else {
        return;
    }
    if (m_channel && m_opened) {
        m_channel->send(*m_following);
    }
}

/// Output written before the mark is readable by now, and must all be read first.
void Holder::place_mark(Moment at)
{
    m_place_at = at + k_until_readable;
    if (!m_verb || m_place) {
        return;
    }
    for (const Stream stream : {Stream::out, Stream::err}) {
        int unread = 0;
        const int from = descriptor_of(stream);
        if (from >= 0 && ::ioctl(from, FIONREAD, &unread) == 0 && unread > 0) {
            return;
        }
    }
    m_place_at.reset();
    m_place = Place{m_marks, {m_output[0].end(), m_output[1].end()}};
    answer_mark();
}

void Holder::answer_mark()
{
    if (!m_place || !m_verb || m_output[0].begin() < m_place->ends[0] ||
        m_output[1].begin() < m_place->ends[1]) {
        return;
    }
    const std::string line = fmt::format("{}\n", m_place->marks);
    // Failure means that the verb does not need the answer.
    (void)::send(m_verb->facts.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    m_place.reset();
}

void Holder::on_children()
{
    signalfd_siginfo info{};
    while (::read(m_signals.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        if (m_door) {
            m_door->on_child(pid);
        }
        if (m_verb && pid == m_verb->pid) {
            m_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            on_facts();
            if (m_alone_since && m_hang_ups > 0) {
                m_left = true;
            }
        }
    }
}

/// Output waits in the backlog until the channel is empty, to avoid copying it; with active streams
/// the channel may never be empty, so then it is queued.
bool Holder::takes_output() const
{
    return m_channel->waiting() == 0 || (!m_streams.empty() && !m_channel->is_full());
}

/// Sends as much output as the connection accepts, then Exit.
void Holder::send_output()
{
    if (!m_channel || !m_opened || !m_verb) {
        return;
    }
    (void)m_channel->write_some();
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        if (m_status && !m_drained[i]) {
            on_output(static_cast<Stream>(i));
        }
        Backlog& output = m_output[i];
        while (!output.all_sent() && takes_output()) {
            const std::uint64_t offset = output.sent();
            const std::string_view bytes = output.send(wire::k_piece);
            m_sending = i;
            m_channel->send_bytes(
                frames::output_header(static_cast<Stream>(i), offset, bytes.size()), bytes);
        }
    }
    if (m_status && !m_exit_sent && m_drained[0] && m_drained[1] && m_output[0].all_sent() &&
        m_output[1].all_sent()) {
        m_exit_sent = true;
        m_channel->send(frames::Exit{*m_status, m_output[0].end(), m_output[1].end()});
    }
    const bool works = m_channel->waiting() == 0 || m_channel->write_some();
    const bool is_done = m_brief && m_exit_sent && m_channel->waiting() == 0;
    if (!works || is_done) {
        drop();
    }
}

void Holder::refuse(Error error)
{
    if (m_channel) {
        m_channel->send(frames::Failure{error.kind, std::move(error.text)});
        m_channel->flush(200);
    }
    drop();
}

/// Each signal is delivered once: a client that reconnects repeats unconfirmed ones.
void Holder::on_signal(const frames::Signal& signal)
{
    if (signal.place > m_signals_taken + 1) {
        return refuse(fail(Error::Kind::internal, "signal out of order"));
    }
    const bool counts = signal.place > 0;
    if (counts && signal.place <= m_signals_taken) {
        return;
    }
    constexpr std::array k_allowed = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    if (std::find(k_allowed.begin(), k_allowed.end(), signal.number) != k_allowed.end()) {
        signal_verb(signal.number);
    }
    if (counts) {
        m_signals_taken = signal.place;
        m_channel->send(frames::SignalTaken{m_signals_taken});
    }
}

void Holder::signal_verb(int number) const
{
    if (!m_verb || m_status) {
        return;
    }
    // Like a terminal: signal the foreground process group.
    pid_t group = m_verb->terminal ? ::tcgetpgrp(m_verb->terminal.get()) : m_verb->pid;
    if (group <= 0) {
        group = m_verb->pid;
    }
    if (::kill(-group, number) != 0) {
        ::kill(m_verb->pid, number); // it has not created its own group yet
    }
}

void Holder::hang_up(Moment at)
{
    if (!m_verb || m_status) {
        return;
    }
    constexpr std::array k_signals = {SIGHUP, SIGTERM, SIGKILL};
    const std::size_t step = std::min<std::size_t>(m_hang_ups, k_signals.size() - 1);
    if (::kill(-m_verb->pid, k_signals[step]) != 0) {
        ::kill(m_verb->pid, k_signals[step]); // it has not created its own group yet
    }
    m_hang_ups += 1;
    m_kill_at = at + (step == 0 ? k_after_hang_up : k_after_term);
}

/// If at most the Exit frame is missing, a long wait is not justified.
std::chrono::seconds Holder::patience() const
{
    if (!m_confirmed || (m_brief && m_status)) {
        return m_status ? k_for_a_brief_one : 0s;
    }
    const bool only_the_end = m_status && m_output[0].size() + m_output[1].size() == 0;
    return only_the_end ? std::min<std::chrono::seconds>(m_patience, k_for_the_end) : m_patience;
}

void Holder::on_timers(Moment at)
{
    if (m_place_at && at >= *m_place_at) {
        place_mark(at);
    }
    if (m_say_taken_at && at >= *m_say_taken_at) {
        say_taken();
    }
    if (m_channel && at - m_heard_at > m_silence) {
        drop();
    }
    if (m_alone_since && at - *m_alone_since >= patience()) {
        if (m_status) {
            m_left = true;
        } else if (m_hang_ups == 0) {
            hang_up(at);
        }
    }
    if (m_kill_at && at >= *m_kill_at) {
        m_kill_at.reset();
        hang_up(at);
    }
}

int Holder::milliseconds_to_wait(Moment at) const
{
    std::optional<Moment> next;
    const auto until = [&](const std::optional<Moment>& other) {
        if (other && (!next || *other < *next)) {
            next = other;
        }
    };
    if (m_channel) {
        until(m_heard_at + m_silence);
        until(m_say_taken_at);
        until(m_place_at);
    }
    if (m_alone_since && (m_status || m_hang_ups == 0)) {
        until(*m_alone_since + patience());
    }
    until(m_kill_at);
    if (!next) {
        return -1;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - at).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

} // namespace gpuq::remote
