// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/port_forwarder.h"

#include "core/exit_status.h"
#include "io/event_loop.h"
#include "io/subprocess.h"
#include "remote/channel.h"
#include "remote/client_forwards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
namespace frames = wire::remote;

constexpr std::chrono::milliseconds k_first_pause = 100ms;
constexpr std::chrono::milliseconds k_longest_pause = 10s;
constexpr std::size_t k_longest_greeting = 1024;
constexpr std::size_t k_longest_error = 4096;
/// For the command to end after its input has ended.
constexpr auto k_patience = 3s;

class Forwarder {
public:
    Forwarder(ForwarderOptions options, Signals& signals)
        : m_options(std::move(options))
        , m_signals(signals)
        , m_forwards(m_loop, std::move(m_options.listeners),
                     {[this] { return m_channel ? &*m_channel : nullptr; },
                      [this] { return m_works; },
                      [this](const std::string& text) { m_options.print_message(text); }})
        , m_again(m_loop, [this] { begin(); })
    {
        m_loop.add([this] { return EventLoop::to_read(m_signals.descriptor()); },
                   [this] { on_signals(); });
        m_loop.add([this] { return EventLoop::to_read(m_channel ? m_channel->input() : -1); },
                   [this] { read(); });
        m_loop.add(
            [this] {
                return m_channel
                           ? EventLoop::to_write(m_channel->output(), m_channel->waiting() > 0)
                           : EventLoop::Interest{};
            },
            [this] { write(); });
        m_loop.add([this] { return EventLoop::to_read(m_errors.get()); },
                   [this] { read_errors(); });
    }
    ~Forwarder() { end(); }
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;

    Result<int> run()
    {
        begin();
        while (!m_status) {
            m_loop.run_once();
            write();
        }
        return std::move(*m_status);
    }

private:
    void begin()
    {
        auto command = start();
        if (!command) {
            m_status = std::move(command).error();
        }
    }

    Result<void> start()
    {
        TRY_ASSIGN(Pipe to, make_pipe());
        TRY_ASSIGN(Pipe from, make_pipe());
        TRY_ASSIGN(Pipe errors, make_pipe());
        // The first command may show its progress, and ask questions.
        const int stderr_of_child = m_worked ? errors.write.get() : STDERR_FILENO;
        TRY_ASSIGN(const Spawned child,
                   spawn({.argv = m_options.command(m_worked),
                          .descriptors = {to.read.get(), from.write.get(), stderr_of_child}}));
        m_pid = child.pid;
        m_errors = std::move(errors.read);
        remote::set_nonblocking(m_errors.get());
        m_error.clear();
        m_channel.emplace(std::move(from.read), std::move(to.write));
        m_decoder = {};
        m_line.clear();
        m_works = false;
        m_is_greeted = false;
        return {};
    }

    void on_signals()
    {
        while (const auto signal = m_signals.next()) {
            if (*signal == SIGINT && !m_worked) {
                continue; // the command withdraws its request, and ends
            }
            const auto status = *signal == SIGINT ? ExitStatus::interrupted : ExitStatus::detached;
            m_status = static_cast<int>(status);
        }
    }

    void read()
    {
        const auto bytes = m_channel->read_some();
        if (!bytes || !take(*bytes)) {
            on_end();
        }
    }

    void write()
    {
        if (m_channel && !m_channel->write_some()) {
            on_end();
        }
    }

    void read_errors()
    {
        std::array<char, 4096> buffer;
        ssize_t count = 0;
        while ((count = ::read(m_errors.get(), buffer.data(), buffer.size())) > 0) {
            m_error.append(buffer.data(), static_cast<std::size_t>(count));
            for (std::size_t end = 0; (end = m_error.find('\n')) != std::string::npos;) {
                show_error(std::string_view(m_error).substr(0, end));
                m_error.erase(0, end + 1);
            }
            m_error.resize(std::min(m_error.size(), k_longest_error));
        }
        if (count == 0) {
            m_errors.reset();
        }
    }

    /// The same reason as that of the last attempt is not news.
    void show_error(std::string_view line)
    {
        constexpr std::string_view k_own = "gpuq: ";
        line.remove_prefix(line.starts_with(k_own) ? k_own.size() : 0);
        if (!line.empty() && line != m_shown) {
            m_shown = line;
            m_options.print_message(line);
        }
    }

    bool take(std::string_view bytes)
    {
        if (!m_is_greeted && !take_greeting(bytes)) {
            return false;
        }
        m_decoder.feed(bytes);
        auto frame = m_decoder.next();
        for (; frame && *frame; frame = m_decoder.next()) {
            note_work();
            if (m_forwards.is_unknown(**frame) || !m_forwards.take(**frame)) {
                return false;
            }
        }
        return static_cast<bool>(frame);
    }

    /// Removes the line from the bytes. False if it is invalid.
    bool take_greeting(std::string_view& bytes)
    {
        const std::size_t end = std::min(bytes.find('\n'), bytes.size());
        m_line += bytes.substr(0, end);
        const bool is_complete = end < bytes.size();
        bytes.remove_prefix(is_complete ? end + 1 : end);
        if (!is_complete) {
            return m_line.size() <= k_longest_greeting;
        }
        if (auto taken = m_options.greeting(m_line); !taken) {
            m_status = std::move(taken).error();
            return false;
        }
        m_is_greeted = true;
        if (m_options.greets_when_connected) {
            note_work();
        }
        return true;
    }

    void note_work()
    {
        m_works = true;
        m_shown.clear();
        m_pause = k_first_pause;
        if (!std::exchange(m_worked, true)) {
            m_options.connected();
        }
    }

    /// The command has ended, or does not follow the protocol.
    void on_end()
    {
        const int status = end();
        read_errors();
        m_errors.reset();
        if (m_status) {
            return;
        }
        if (const auto result = m_worked ? m_options.result(status) : std::optional(status)) {
            m_status = *result;
        } else { // its step was killed, the next link waits for GPUs, Slurm is silent, ...
            m_again.start_in(m_pause);
            m_pause = std::min(m_pause * 2, k_longest_pause);
        }
    }

    /// Ends the command and the streams. Returns its exit status.
    int end()
    {
        m_forwards.clear();
        if (m_channel) {
            m_channel->send(frames::Bye{});
            (void)m_channel->write_some();
            m_channel.reset();
        }
        const pid_t pid = std::exchange(m_pid, -1);
        if (pid <= 0) {
            return 0;
        }
        const auto until = std::chrono::steady_clock::now() + k_patience;
        while (std::chrono::steady_clock::now() < until) {
            if (const auto status = exit_code_if_ended(pid)) {
                return *status;
            }
            ::usleep(5000);
        }
        return end_in(pid, k_patience).value_or(static_cast<int>(ExitStatus::internal));
    }

    ForwarderOptions m_options;
    Signals& m_signals;
    EventLoop m_loop;
    std::optional<remote::Channel> m_channel; ///< while the command runs
    remote::ClientForwards m_forwards;
    EventLoop::Timer m_again;
    pid_t m_pid = -1;
    frames::Decoder m_decoder;
    std::string m_line;
    Descriptor m_errors; ///< stderr of a command that is not the first
    std::string m_error, m_shown;
    bool m_is_greeted = false;
    bool m_works = false;  ///< this command has connected
    bool m_worked = false; ///< one of them has
    std::chrono::milliseconds m_pause = k_first_pause;
    std::optional<Result<int>> m_status;
};

} // namespace

std::optional<int> lasting_failure(int status)
{
    const auto is = [status](ExitStatus one) { return status == static_cast<int>(one); };
    return is(ExitStatus::refused) || is(ExitStatus::not_executable) || is(ExitStatus::not_found)
               ? std::optional(status)
               : std::nullopt;
}

Result<int> forward_ports(ForwarderOptions options, Signals& signals)
{
    std::signal(SIGPIPE, SIG_IGN); // of a command that was killed
    return Forwarder(std::move(options), signals).run();
}

} // namespace gpuq::cli
