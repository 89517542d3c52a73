// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/stream_relay.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace gpuq::remote {

StreamRelay::StreamRelay(EventLoop& loop, std::function<Channel*()> client)
    : m_client(std::move(client))
{
    // If the client does not read, leave data from the run in its channel.
    loop.add(
        [this] {
            const Channel* const to = m_client();
            const bool takes = to == nullptr || !to->is_full();
            return EventLoop::to_read(dialer() != nullptr ? dialer()->input() : -1, takes);
        },
        [this] { on_dialer(); });
    loop.add(
        [this] {
            const Channel* const there = dialer();
            return there != nullptr ? EventLoop::to_write(there->output(), there->waiting() > 0)
                                    : EventLoop::Interest{};
        },
        [this] {
            if (!dialer()->write_some()) {
                on_dialer();
            }
        });
}

void StreamRelay::begin(const std::string& program, const frames::Start& start)
{
    m_run_channel.emplace(program, start);
}

Result<void> StreamRelay::dial(const frames::Dial& dial,
                               const std::optional<frames::Following>& run)
{
    if (m_streams.contains(dial.stream)) {
        return fail(Error::Kind::internal, "duplicate stream");
    }
    if (!m_run_channel || dial.forward >= m_run_channel->forwards() || !run) {
        refuse(dial.stream, "there is no run to connect to");
        return {};
    }
    if (m_streams.size() >= frames::k_most_streams) {
        refuse(dial.stream, "too many connections at once");
        return {};
    }
    const auto opened = m_run_channel->open(*run);
    if (!opened) {
        refuse(dial.stream, opened.error().text);
        return {};
    }
    if (*opened) {
        end_streams("");
        m_decoder = {};
    }
    m_streams.try_emplace(dial.stream);
    dialer()->send(dial);
    (void)dialer()->write_some();
    return {};
}

void StreamRelay::refuse(std::uint32_t stream, std::string why)
{
    if (Channel* const client = m_client()) {
        client->send(frames::StreamClosed{stream, std::move(why)});
    }
}

void StreamRelay::end_streams(const std::string& why)
{
    for (const auto& [stream, ends] : std::exchange(m_streams, {})) {
        refuse(stream, why);
    }
}

void StreamRelay::client_left()
{
    for (const auto& [stream, ends] : std::exchange(m_streams, {})) {
        if (Channel* const there = dialer()) {
            there->send(frames::StreamClosed{stream, ""});
        }
    }
}

/// Removes a stream that is over.
void StreamRelay::note_end(std::map<std::uint32_t, Ends>::iterator stream,
                           const frames::Frame& frame, bool Ends::*side)
{
    Ends& ends = stream->second;
    ends.*side = ends.*side || std::holds_alternative<frames::StreamEnd>(frame);
    if ((ends.client && ends.run) || std::holds_alternative<frames::StreamClosed>(frame)) {
        m_streams.erase(stream);
    }
}

void StreamRelay::pass_on(std::uint32_t stream, const frames::Frame& frame)
{
    const auto found = m_streams.find(stream);
    Channel* const there = dialer();
    if (found == m_streams.end() || there == nullptr) {
        return;
    }
    note_end(found, frame, &Ends::client);
    there->send(frame);
    (void)there->write_some(); // its end is detected by reading
}

void StreamRelay::from_dialer(std::uint32_t stream, const frames::Frame& frame)
{
    const auto found = m_streams.find(stream);
    if (found == m_streams.end()) {
        return;
    }
    note_end(found, frame, &Ends::run);
    if (Channel* const client = m_client()) {
        client->send(frame);
    }
}

/// Data from the run, or the end of its channel.
void StreamRelay::on_dialer()
{
    const auto bytes = dialer()->read_some();
    m_decoder.feed(bytes.value_or(""));
    if (!bytes || !take_frames()) {
        end_streams(m_run_channel->close());
    }
}

/// False for bytes that are not a frame.
bool StreamRelay::take_frames()
{
    while (true) {
        const auto frame = m_decoder.next();
        if (!frame || !*frame) {
            return static_cast<bool>(frame);
        }
        m_run_channel->answered(); // the channel works
        if (const auto stream = stream_of(**frame)) {
            from_dialer(*stream, **frame);
        }
    }
}

void StreamRelay::on_child(pid_t pid)
{
    if (m_run_channel) {
        m_run_channel->on_child(pid);
    }
}

std::optional<std::uint32_t> stream_of(const frames::Frame& frame)
{
    return std::visit(
        [](const auto& each) -> std::optional<std::uint32_t> {
            using Kind = std::decay_t<decltype(each)>;
            if constexpr (std::is_same_v<Kind, frames::StreamBytes> ||
                          std::is_same_v<Kind, frames::StreamTaken> ||
                          std::is_same_v<Kind, frames::StreamEnd> ||
                          std::is_same_v<Kind, frames::StreamClosed>) {
                return each.stream;
            }
            return std::nullopt;
        },
        frame);
}

} // namespace gpuq::remote
