// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/notebook_carrier.h"

#include "core/exit_status.h"
#include "io/event_loop.h"
#include "io/subprocess.h"
#include "remote/lasting_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
namespace frames = wire::remote;

constexpr std::chrono::milliseconds k_first_pause = 50ms;
constexpr std::chrono::milliseconds k_longest_pause = 5s;
constexpr auto k_check_period = 1s;
/// For the gate to hear that the client has left.
constexpr auto k_patience = 5s;
/// For a command to end after TERM.
constexpr auto k_time_to_end = 2s;

class Carrier {
public:
    explicit Carrier(CarrierOptions options)
        : m_options(std::move(options))
        , m_link(std::make_shared<remote::LastingLink>(m_options.session))
        , m_again(m_loop, [this] { begin(); })
        , m_check(m_loop, [this] { check(); })
        , m_leaving(m_loop, [this] { m_status = m_exit; })
    {
        remote::set_nonblocking(m_options.in);
        remote::set_nonblocking(m_options.out);
        m_loop.add(
            [this] { return EventLoop::to_read(m_ended_input ? -1 : m_options.in, m_in.empty()); },
            [this] { read_input(); });
        m_loop.add(
            [this] {
                // Also with nothing to write: a closed reader is reported as an error.
                return EventLoop::Interest{m_is_out_closed ? -1 : m_options.out,
                                           static_cast<short>(m_out.empty() ? 0 : POLLOUT)};
            },
            [this](short ready) { write_output(ready); });
        m_loop.add([this] { return EventLoop::to_read(m_link->input(), m_out.size() < k_most); },
                   [this] { receive(); });
        m_loop.add([this] { return EventLoop::to_write(m_link->output(), m_link->has_unsent()); },
                   [this] { (void)m_link->write({}); });
        if (m_options.signals != nullptr) {
            m_loop.add([this] { return EventLoop::to_read(m_options.signals->descriptor()); },
                       [this] { on_signals(); });
        }
        m_check.repeat(k_check_period);
    }
    ~Carrier() { end(); }
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    Result<int> run()
    {
        begin();
        while (!m_status) {
            m_loop.run_once();
            send_input();
            if (!m_link->is_connected() && !m_again.is_started() && !m_status) {
                on_cut();
            }
        }
        return std::move(*m_status);
    }

private:
    static constexpr std::size_t k_most = 1 << 20;

    void begin()
    {
        end();
        auto to = make_pipe();
        auto from = make_pipe();
        if (!to || !from) {
            m_again.start_in(m_pause);
            return;
        }
        auto child = spawn({.argv = m_options.command,
                            .descriptors = {to->read.get(), from->write.get(),
                                            m_has_connected ? Subprocess::k_null : STDERR_FILENO},
                            .group = Subprocess::Group::own,
                            .death_signal = SIGTERM});
        if (!child) {
            m_status = std::move(child).error();
            return;
        }
        m_pid = child->pid;
        m_link->connect(std::move(from->read), std::move(to->write));
    }

    void end()
    {
        if (m_pid > 0) {
            (void)end_in(std::exchange(m_pid, -1), k_time_to_end);
        }
    }

    void on_cut()
    {
        if (m_link->is_lost() && m_ended_input) { // the gate has confirmed the end
            m_status = m_exit;
            return;
        }
        if (m_link->is_lost()) {
            check();
            if (!m_status) {
                m_status = fail(Error::Kind::lost, "the notebook has lost its connections");
            }
            return;
        }
        check();
        m_again.start_in(m_pause);
        m_pause = std::min(m_pause * 2, k_longest_pause);
    }

    void check()
    {
        if (const auto status = m_options.ended()) {
            m_status = *status;
        }
    }

    void on_signals()
    {
        while (const auto signal = m_options.signals->next()) {
            const auto status = *signal == SIGINT ? ExitStatus::interrupted : ExitStatus::detached;
            if (!m_has_connected) {
                m_status = static_cast<int>(status);
            } else if (*signal != SIGINT) { // Ctrl-C is for gpuq notebook, which ends the input
                m_exit = static_cast<int>(status);
                leave();
            }
        }
    }

    void read_input()
    {
        std::array<char, wire::k_piece> buffer;
        const ssize_t count = ::read(m_options.in, buffer.data(), buffer.size());
        if (count > 0) {
            m_in.append(buffer.data(), static_cast<std::size_t>(count));
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            leave();
        }
        send_input();
    }

    /// The streams end with their client. One that was killed may have left half a frame.
    void leave()
    {
        if (!std::exchange(m_ended_input, true)) {
            m_in.clear();
            m_link->leave();
            m_leaving.start_in(k_patience);
        }
    }

    void send_input()
    {
        if (!m_in.empty()) {
            const std::array<iovec, 1> part{{{m_in.data(), m_in.size()}}};
            const ssize_t count = m_link->write(part);
            m_in.erase(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        }
    }

    void receive()
    {
        std::array<char, wire::k_piece> buffer;
        ssize_t count = 0;
        while ((count = m_link->read(buffer)) > 0) {
            m_out.append(buffer.data(), static_cast<std::size_t>(count));
        }
        if (m_link->has_answered()) {
            m_pause = k_first_pause;
            if (!std::exchange(m_has_connected, true)) {
                m_out.insert(0, m_options.connected());
            }
        }
    }

    void write_output(short ready)
    {
        const ssize_t count =
            m_out.empty() ? 0 : ::write(m_options.out, m_out.data(), m_out.size());
        m_out.erase(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        m_is_out_closed = (ready & (POLLERR | POLLHUP | POLLNVAL)) != 0 ||
                          (count < 0 && errno != EAGAIN && errno != EINTR);
        if (m_is_out_closed) {
            leave();
        }
    }

    CarrierOptions m_options;
    EventLoop m_loop;
    std::shared_ptr<remote::LastingLink> m_link;
    EventLoop::Timer m_again, m_check, m_leaving;
    pid_t m_pid = -1;
    std::string m_in, m_out;
    bool m_ended_input = false;
    int m_exit = 0; ///< after leave()
    bool m_is_out_closed = false;
    bool m_has_connected = false;
    std::chrono::milliseconds m_pause = k_first_pause;
    std::optional<Result<int>> m_status;
};

} // namespace

std::string random_digits(Services& services, std::size_t count)
{
    std::string digits;
    while (digits.size() < count) {
        for (const unsigned char byte : services.random()) {
            digits += fmt::format("{:02x}", byte);
        }
    }
    return digits.substr(0, count);
}

Result<int> carry_notebook(CarrierOptions options)
{
    std::signal(SIGPIPE, SIG_IGN);
    return Carrier(std::move(options)).run();
}

} // namespace gpuq::cli
