// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/tunnel.h"

#include "ports/step_process.h"
#include "wire/frame.h"

#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

constexpr std::size_t k_piece = 64 << 10;
constexpr std::size_t k_most_waiting = 64 << 20; ///< ssh itself keeps at most a few MiB in flight
constexpr std::size_t k_most_errors = 4096;

/// Bytes waiting to be written to a descriptor.
class Queue {
public:
    void add(std::string_view bytes) { m_bytes += bytes; }
    bool empty() const { return m_begin == m_bytes.size(); }
    std::size_t size() const { return m_bytes.size() - m_begin; }
    std::string_view first(std::size_t most) const
    {
        return std::string_view(m_bytes).substr(m_begin, most);
    }
    void drop(std::size_t count)
    {
        m_begin += count;
        if (m_begin == m_bytes.size() || m_begin > k_piece * 16) {
            m_bytes.erase(0, m_begin);
            m_begin = 0;
        }
    }

private:
    std::string m_bytes;
    std::size_t m_begin = 0;
};

class Tunnel {
public:
    Tunnel(const StepProcess& step, int input, int output)
        : m_step(step)
        , m_input(input)
        , m_output(output)
    {
        for (const int fd : {m_step.input, m_step.output, m_step.error}) {
            ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
        }
    }
    ~Tunnel()
    {
        close(m_step.input);
        close(m_step.output);
        close(m_step.error);
    }
    Tunnel(const Tunnel&) = delete;
    Tunnel& operator=(const Tunnel&) = delete;

    TunnelEnd run()
    {
        while (m_output >= 0 && (m_step.output >= 0 || !m_out.empty())) {
            pass_on();
        }
        read_errors();
        return std::move(m_end);
    }

private:
    static void close(int& fd)
    {
        if (fd >= 0) {
            ::close(std::exchange(fd, -1));
        }
    }

    void pass_on()
    {
        pollfd waits[] = {
            {m_in.size() < k_piece ? m_input : -1, POLLIN, 0},
            {m_in.empty() ? -1 : m_step.input, POLLOUT, 0},
            {m_out.size() < k_most_waiting ? m_step.output : -1, POLLIN, 0},
            // Also with nothing to write: a closed reader is reported as an error.
            {m_output, static_cast<short>(m_out.empty() ? 0 : POLLOUT), 0},
            {m_step.error, POLLIN, 0},
        };
        if (::poll(waits, std::size(waits), -1) < 0) {
            return;
        }
        if (waits[0].revents != 0) {
            read_input();
        }
        if (waits[1].revents != 0) {
            write_to_step();
        }
        if (waits[2].revents != 0) {
            read_from_step();
        }
        if (waits[3].revents != 0) {
            write_output((waits[3].revents & POLLOUT) != 0);
        }
        if (waits[4].revents != 0) {
            read_errors();
        }
    }

    /// -1: nothing now; 0: the end.
    static ssize_t read_some(int fd, std::array<char, k_piece>& piece)
    {
        const ssize_t size = ::read(fd, piece.data(), piece.size());
        return size < 0 && errno != EINTR && errno != EAGAIN ? 0 : size;
    }

    void read_input()
    {
        std::array<char, k_piece> piece;
        const ssize_t size = read_some(m_input, piece);
        if (size > 0) {
            m_in.add({piece.data(), static_cast<std::size_t>(size)});
        } else if (size == 0) {
            m_input = -1;
            end_input_when_sent();
        }
    }

    void write_to_step()
    {
        const auto bytes = m_in.first(k_piece);
        const ssize_t size = ::write(m_step.input, bytes.data(), bytes.size());
        if (size >= 0) {
            m_in.drop(static_cast<std::size_t>(size));
            end_input_when_sent();
        } else if (errno != EAGAIN && errno != EINTR) {
            close(m_step.input); // the end of the step is detected on its output
            m_in.drop(m_in.size());
        }
    }

    void end_input_when_sent()
    {
        if (m_input < 0 && m_in.empty()) {
            close(m_step.input);
        }
    }

    void read_from_step()
    {
        std::array<char, k_piece> piece;
        const ssize_t size = read_some(m_step.output, piece);
        if (size < 0) {
            return;
        }
        m_decoder.feed({piece.data(), static_cast<std::size_t>(size)});
        auto frame = m_decoder.next();
        for (; frame && *frame; frame = m_decoder.next()) {
            if (const auto* output = std::get_if<wire::Output>(&**frame)) {
                m_out.add(output->bytes);
                m_end.connected = true;
            }
        }
        if (size == 0 || !frame) {
            close(m_step.output);
        }
    }

    /// A pipe that has space has space for PIPE_BUF bytes. It is shared with ssh, so its flags must
    /// not be changed.
    void write_output(bool has_room)
    {
        const auto bytes = m_out.first(PIPE_BUF);
        const ssize_t size = has_room ? ::write(m_output, bytes.data(), bytes.size()) : -1;
        if (size >= 0) {
            m_out.drop(static_cast<std::size_t>(size));
        } else if (!has_room || (errno != EINTR && errno != EAGAIN)) {
            m_output = -1;
        }
    }

    void read_errors()
    {
        std::array<char, k_piece> piece;
        const ssize_t size = m_step.error < 0 ? -1 : read_some(m_step.error, piece);
        if (size == 0) {
            close(m_step.error);
        } else if (size > 0) {
            m_end.errors.append(piece.data(), static_cast<std::size_t>(size));
            if (m_end.errors.size() > k_most_errors) {
                m_end.errors.erase(0, m_end.errors.size() - k_most_errors);
            }
        }
    }

    StepProcess m_step;
    int m_input;
    int m_output;
    Queue m_in;
    Queue m_out;
    wire::Decoder m_decoder;
    TunnelEnd m_end;
};

} // namespace

TunnelEnd carry(const StepProcess& step, int input, int output)
{
    return Tunnel(step, input, output).run();
}

} // namespace gpuq::cli
