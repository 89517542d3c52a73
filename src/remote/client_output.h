// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "io/event_loop.h"
#include "remote/backlog.h"
#include "remote/channel.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// Output of a session on its way to the user. It counts as shown when it is written, and only then
/// the host may discard it.
class ClientOutput {
public:
    struct Sink {
        int descriptor = -1;
        std::function<std::string(std::string_view)> shown_as; ///< ClientOptions::shown_as
    };
    struct Events {
        /// Sends a frame to the host; false if it is not connected.
        std::function<bool(const frames::Taken&)> confirm;
        /// Stream `stream` can no longer be written, because of `error`.
        std::function<void(std::size_t stream, int error)> closed;
    };
    ClientOutput(EventLoop& loop, std::array<Sink, 2> sinks, Events events);

    /// `internal` for bytes that do not follow those received before, or exceed the window.
    Result<void> check(const frames::OutputBytes& output) const;
    /// Writes a checked frame, as much as possible now.
    void take(const frames::OutputBytes& output);
    /// Writes the bytes that the conversion keeps back for the end of a stream.
    void show_the_rest();
    /// Confirms the bytes written to the host at once, not in a batch.
    void confirm();
    /// The session is replaced by one that is started from the offsets written, and sends the rest
    /// again.
    void restart();

    std::uint64_t received(std::size_t stream) const { return m_shown[stream].received; }
    std::uint64_t written(std::size_t stream) const { return m_shown[stream].written(); }
    std::uint64_t written() const { return written(0) + written(1); }
    bool is_all_written() const { return waiting() == 0; }

private:
    /// One stream: bytes received and bytes written.
    struct Shown {
        Sink sink;
        Descriptor own; ///< see opened_again()
        std::uint64_t received = 0;
        Backlog waiting;
        bool broken = false; ///< its reader has closed it
        /// Set if the bytes in `waiting` are converted: stream offset up to which everything is
        /// written.
        std::optional<std::uint64_t> settled;
        std::uint64_t written() const { return settled ? *settled : received - waiting.size(); }
    };

    std::size_t waiting() const { return m_shown[0].waiting.size() + m_shown[1].waiting.size(); }
    /// Bytes of the host that it cannot discard yet; waiting() counts them as converted.
    std::uint64_t unwritten() const { return received(0) + received(1) - written(); }
    void show_as(std::size_t stream, std::string_view bytes);
    void write();
    void write_waiting(std::size_t stream);
    std::size_t write_some(std::size_t stream, std::string_view bytes);
    void close(std::size_t stream, int error);
    void confirm_soon();

    Events m_events;
    std::array<Shown, 2> m_shown;
    std::array<std::uint64_t, 2> m_reported{};
    EventLoop::Timer m_confirm_timer;
};

} // namespace gpuq::remote
