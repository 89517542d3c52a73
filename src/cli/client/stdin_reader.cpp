// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/stdin_reader.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

/// The bytes of one key arrive within this time, even over a slow line; it delays a single Escape.
constexpr auto k_rest_of_key = 50ms;

/// Whether this process may read descriptor 0: not if it is a terminal with this process in the
/// background.
bool may_read_stdin()
{
    const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
    return foreground < 0 || foreground == ::getpgrp();
}

} // namespace

StdinReader::StdinReader(EventLoop& loop, const Run& run, const RawTerminal& terminal,
                         Options options, Events events)
    : m_run(run)
    , m_terminal(terminal)
    , m_options(std::move(options))
    , m_events(std::move(events))
    , m_keys(m_options.detach_key)
    , m_keys_timer(loop, [this] { release_keys(); })
{
    if (const off_t begin = ::lseek(STDIN_FILENO, 0, SEEK_CUR); begin >= 0) {
        m_begin = begin;
    }
    if (run.request.input == Input::none || m_options.link > LinkNumber{1}) {
        m_buffer.close();
    }
}

/// Whether input on stdin goes to the program.
bool StdinReader::feeds() const
{
    return has_terminal() || (m_options.is_owner && m_run.request.input != Input::none &&
                              m_options.link == LinkNumber{1});
}

bool StdinReader::wants_more() const
{
    if (m_gone || !may_read_stdin()) {
        return false;
    }
    if (has_terminal()) {
        return m_terminal.is_raw() && m_buffer.wants_more();
    }
    return !m_options.is_owner || m_buffer.wants_more();
}

void StdinReader::read()
{
    if (!feeds() && ::isatty(STDIN_FILENO) != 1) {
        return leave_unread();
    }
    std::array<char, wire::k_piece> buffer;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count > 0) {
        on_typed({buffer.data(), static_cast<std::size_t>(count)});
        m_events.send();
    } else {
        on_end(count, errno);
    }
}

/// The bytes are for the next process that reads them, such as the `while read` of a script.
void StdinReader::leave_unread()
{
    m_gone = true;
    int waiting = 0;
    if (!m_begin && ::ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0) {
        refuse();
    }
}

void StdinReader::refuse()
{
    if (!std::exchange(m_refused, true)) {
        m_events.print_message("the program takes input only from the client that started the run: "
                               "input typed here is ignored");
    }
}

void StdinReader::on_end(ssize_t count, int error)
{
    const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
    if (!m_options.is_owner && !has_terminal()) {
        m_gone = true;
    } else if (m_run.request.input == Input::terminal && !is_terminal) {
        m_gone = true;
    } else if (count == 0) {
        m_buffer.close();
    } else if (error != EINTR && error != EAGAIN && !(error == EIO && is_terminal)) {
        // The program must not take partial input for complete input: the run ends.
        m_events.print_message(
            fmt::format("standard input can't be read: {}", std::strerror(error)));
        return m_events.leave(ExitStatus::internal);
    }
    m_events.send();
}

void StdinReader::on_typed(std::string_view bytes)
{
    if (!feeds()) { // read nevertheless: otherwise our shell would read it later
        return refuse();
    }
    if (!has_terminal()) {
        return m_buffer.add(bytes);
    }
    const auto found =
        m_keys.take(bytes, m_terminal.encodes_keys() ? EscapeKeys::Encoding::sequences
                                                     : EscapeKeys::Encoding::plain);
    m_keys_timer.stop();
    if (m_keys.is_waiting()) {
        m_keys_timer.start_in(k_rest_of_key);
    }
    on_keys(found);
}

void StdinReader::on_keys(const EscapeKeys::Found& found)
{
    m_buffer.add(found.bytes);
    if (found.help) {
        const char first = m_options.detach_key.first;
        m_events.print_message(fmt::format("{} detaches, Enter {} {} types {}",
                                           keys_text(m_options.detach_key), first, first, first));
    }
    if (found.detach) {
        m_events.leave(ExitStatus::interrupted);
    }
}

/// The typed bytes are complete: no more bytes of a key have arrived.
void StdinReader::release_keys()
{
    m_buffer.add(m_keys.released());
    m_events.send();
}

void StdinReader::send(Connection& connection)
{
    if (!feeds()) {
        return;
    }
    for (const wire::Frame& frame : m_buffer.to_send()) {
        connection.send(frame);
    }
    if (connection.wants_to_write() >= 0) {
        connection.write_some(); // sends a key without another iteration of the loop
    }
}

bool StdinReader::is_incomplete() const
{
    return m_options.is_owner && m_run.request.input == Input::pipe && !m_buffer.all_taken();
}

void StdinReader::return_unread(std::uint64_t read) const
{
    const std::uint64_t added = m_buffer.added();
    if (!m_options.is_owner || m_run.request.input != Input::pipe || read >= added) {
        return;
    }
    if (m_begin) {
        const auto end = *m_begin + static_cast<off_t>(added);
        if (::lseek(STDIN_FILENO, 0, SEEK_CUR) == end) { // otherwise another process has moved it
                                                         // too
            ::lseek(STDIN_FILENO, *m_begin + static_cast<off_t>(read), SEEK_SET);
        }
    } else if (!m_events.return_to_serve(added - read) && read == 0) {
        m_events.print_message(
            fmt::format("{} bytes of standard input were read for the program, which read "
                        "none: gpuq run -n leaves standard input alone",
                        added));
    }
}

} // namespace gpuq::cli
