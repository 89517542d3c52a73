// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/fake_services.h"
#include "core/layout.h"
#include "io/descriptor.h"
#include "posix/store.h"
#include "runs/records/journal.h"
#include "runs/run_on_disk.h"
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

/// gpuq's client in a process of its own, between a scripted user and scripted supervisors.
namespace gpuq::cli {

using namespace std::chrono_literals;

constexpr auto k_test_patience = 20s;

/// Waits until `fd` can be read, has ended, or the patience is over.
inline bool is_readable(int fd, std::chrono::milliseconds patience = k_test_patience)
{
    pollfd wait{fd, POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(patience.count())) > 0;
}

/// The supervisor's end of a connection: of the streams of a step, or of a socket.
class Supervisor {
public:
    /// A connection by a step. The client's end is taken once.
    static Supervisor by_step()
    {
        Pipe input = make_pipe().value();
        Pipe output = make_pipe().value();
        Pipe error = make_pipe().value();
        Supervisor one;
        one.m_input = std::move(input.read);
        one.m_output = std::move(output.write);
        one.m_error = std::move(error.write);
        one.m_clients = {std::move(input.write), std::move(output.read), std::move(error.read)};
        return one;
    }

    /// A connection by the socket of the run's node.
    static Supervisor by_socket()
    {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        Supervisor one;
        one.m_input.reset(ends[0]);
        one.m_output.reset(::dup(ends[0]));
        one.m_clients[0].reset(ends[1]);
        return one;
    }

    /// A connection that the client has opened.
    static Supervisor by_socket(Descriptor socket)
    {
        Supervisor one;
        one.m_output.reset(::dup(socket.get()));
        one.m_input = std::move(socket);
        return one;
    }

    StepProcess step_for_client()
    {
        StepProcess process;
        process.input = m_clients[0].release();
        process.output = m_clients[1].release();
        process.error = m_clients[2].release();
        return process;
    }
    Descriptor socket_for_client() { return std::move(m_clients[0]); }

    void close_clients_end() { m_clients = {}; }
    void close_own_end()
    {
        m_input.reset();
        m_output.reset();
        m_error.reset();
    }

    /// Ends the connection. `errors`: srun's last words.
    void disconnect(std::string_view errors = "")
    {
        if (!errors.empty()) {
            write_all(m_error.get(), errors);
        }
        close_own_end();
    }

    void send(const wire::Frame& frame) { send_bytes(wire::encode(frame)); }
    void send_bytes(std::string_view bytes) { EXPECT_TRUE(write_all(m_output.get(), bytes)); }

    /// Begins as every supervisor does.
    void greet()
    {
        send(wire::Hello{wire::k_version, "key", 1, 7, "node1"});
        send(wire::Started{99});
    }

    /// The client's next frame, which must be of this type. Skips flow control.
    template <typename Expected>
    Expected receive()
    {
        const std::optional<wire::Frame> frame = next();
        if (frame && std::holds_alternative<Expected>(*frame)) {
            return std::get<Expected>(*frame);
        }
        ADD_FAILURE() << (frame ? "another frame: " + std::to_string(frame->index())
                                : "no frame: the client is gone or silent");
        return {};
    }

    /// Waits until the client has closed the connection; the frames before that are skipped.
    bool is_left()
    {
        while (next()) {
        }
        return m_ended;
    }

private:
    std::optional<wire::Frame> next()
    {
        while (true) {
            auto frame = m_decoder.next();
            if (!frame) {
                return std::nullopt;
            }
            if (*frame && !std::holds_alternative<wire::OutputTaken>(**frame)) {
                return **frame;
            }
            if (!*frame && !read_more()) {
                return std::nullopt;
            }
        }
    }

    bool read_more()
    {
        std::array<char, 4096> bytes{};
        if (!is_readable(m_input.get())) {
            return false;
        }
        const ssize_t count = ::read(m_input.get(), bytes.data(), bytes.size());
        m_ended = count <= 0;
        if (count > 0) {
            m_decoder.feed({bytes.data(), static_cast<std::size_t>(count)});
        }
        return count > 0;
    }

    Descriptor m_input, m_output, m_error;
    std::array<Descriptor, 3> m_clients; ///< until the client has them
    wire::Decoder m_decoder;
    bool m_ended = false;
};

/// Slurm as seen by the client: a step gets the streams that the test has prepared for its word.
class StepsCluster : public fakes::FakeCluster {
public:
    std::deque<StepProcess> relays;
    std::deque<StepProcess> guards;
    bool first_step_died = false;

    Result<StepProcess> start_step(JobId id, const std::vector<std::string>& step, bool) override
    {
        requests.push_back(fmt::format("{} {} of job {}", step.at(1), step.at(4), id.value));
        std::deque<StepProcess>& prepared = step.at(1) == "guard" ? guards : relays;
        if (prepared.empty()) {
            return fail(Error::Kind::unreachable, "Slurm does not answer");
        }
        const StepProcess process = prepared.front();
        prepared.pop_front();
        return process;
    }

    void abandon(const StepProcess&) override { requests.emplace_back("abandon"); }

    Result<bool> has_first_step(JobId id) override
    {
        requests.push_back(fmt::format("has_first_step {}", id.value));
        return !first_step_died;
    }
};

class ClientServices : public FakeServices {
public:
    StepsCluster steps;
    Result<Cluster*> cluster() override { return &steps; }
};

/// Where the user's streams lead.
enum class User { pipes, terminal };

/// The client process. Everything is prepared before start(); the process has a copy of it.
class ScriptedClient {
public:
    using Body = std::function<Result<int>(Services&, Signals&)>;

    ScriptedClient()
    {
        std::signal(SIGPIPE, SIG_IGN); // a client that is gone fails the write
        std::string name = std::filesystem::temp_directory_path() / "gpuq-client-XXXXXX";
        m_directory = ::mkdtemp(name.data());
        store = PosixStore::open(m_directory + "/state").value();
        services.directory = store.get();
        services.set.direct = Direct::node;
    }
    ScriptedClient(const ScriptedClient&) = delete;
    ScriptedClient& operator=(const ScriptedClient&) = delete;
    ~ScriptedClient()
    {
        if (m_pid > 0) {
            ::kill(m_pid, SIGKILL);
            ::waitpid(m_pid, nullptr, 0);
        }
        std::filesystem::remove_all(m_directory);
    }

    std::unique_ptr<PosixStore> store;
    ClientServices services;
    std::string input_file; ///< if set, the content of a file for stdin

    /// Prepares a step of the client; steps of one kind are started in this order.
    Supervisor& relay() { return add(services.steps.relays, Supervisor::by_step()); }
    Supervisor& guard() { return add(services.steps.guards, Supervisor::by_step()); }
    /// The supervisor's own step, for Session::run.
    Supervisor& first_step()
    {
        m_supervisors.push_back(Supervisor::by_step());
        first = m_supervisors.back().step_for_client();
        note_clients(*first);
        return m_supervisors.back();
    }
    std::optional<StepProcess> first;

    void start(User user, const Body& body)
    {
        open_streams(user);
        std::fflush(nullptr); // otherwise the child would print it again
        m_pid = ::fork();
        if (m_pid == 0) {
            run(user, body);
        }
        for (const int descriptor : m_clients) {
            ::close(descriptor);
        }
        for (Descriptor* const clients :
             {&m_in.read, &m_out.write, &m_err.write, &m_report.write, &m_slave}) {
            clients->reset();
        }
    }

    void type(std::string_view bytes) { EXPECT_TRUE(write_all(keyboard(), bytes)); }
    void end_input() { m_in.write.reset(); }
    void signal(int number) const { ::kill(m_pid, number); }
    void resize(unsigned short rows, unsigned short columns)
    {
        const winsize size{rows, columns, 0, 0};
        EXPECT_EQ(::ioctl(m_master.get(), TIOCSWINSZ, &size), 0);
    }
    void close_stdout() { m_out.read.reset(); }

    int error_stream() const { return m_err.read.get(); }
    /// Waits until stderr contains `text`. A terminal has one stream for both.
    bool prints(std::string_view text) { return read_until(m_err.read, m_stderr, text); }
    /// The same for stdout and the terminal.
    bool shows(std::string_view text) { return read_until(screen(), m_stdout, text); }

    /// Waits for the end of the client and returns its status. Kills a client that does not end.
    int status()
    {
        (void)read_until(screen(), m_stdout, k_everything);
        (void)read_until(m_err.read, m_stderr, k_everything);
        (void)read_until(m_report.read, m_reported, k_everything);
        if (!is_readable(m_report.read.get(), 0ms)) { // not even its end
            ::kill(m_pid, SIGKILL);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(m_pid, &status, 0), m_pid);
        m_pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    // After status(): all that it has written, its requests to Slurm, and the offset of stdin.
    const std::string& out() const { return m_stdout; }
    const std::string& err() const { return m_stderr; }
    std::string requests() const { return m_reported.substr(0, m_reported.rfind('\n')); }
    std::string input_offset() const { return m_reported.substr(m_reported.rfind('\n') + 1); }

private:
    static constexpr std::string_view k_everything{"\0", 1};

    Supervisor& add(std::deque<StepProcess>& steps, Supervisor supervisor)
    {
        m_supervisors.push_back(std::move(supervisor));
        steps.push_back(m_supervisors.back().step_for_client());
        note_clients(steps.back());
        return m_supervisors.back();
    }

    void note_clients(const StepProcess& process)
    {
        m_clients.insert(m_clients.end(), {process.input, process.output, process.error});
    }

    void open_streams(User user)
    {
        m_report = make_pipe().value();
        m_err = make_pipe().value();
        if (user == User::terminal) {
            m_master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
            EXPECT_EQ(::grantpt(m_master.get()), 0);
            EXPECT_EQ(::unlockpt(m_master.get()), 0);
            resize(24, 80);
            m_slave.reset(::open(::ptsname(m_master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
            return;
        }
        m_in = make_pipe().value();
        m_out = make_pipe().value();
        if (!input_file.empty()) {
            std::ofstream(m_directory + "/input") << input_file;
            m_in.read.reset(::open((m_directory + "/input").c_str(), O_RDONLY | O_CLOEXEC));
        }
    }

    [[noreturn]] void run(User user, const Body& body)
    {
        for (Supervisor& supervisor : m_supervisors) {
            supervisor.close_own_end();
        }
        for (Descriptor* const tests :
             {&m_in.write, &m_out.read, &m_err.read, &m_report.read, &m_master}) {
            tests->reset();
        }
        ::setsid();
        const bool terminal = user == User::terminal;
        if (terminal) {
            ::ioctl(m_slave.get(), TIOCSCTTY, 0);
        }
        ::dup2(terminal ? m_slave.get() : m_in.read.get(), STDIN_FILENO);
        ::dup2(terminal ? m_slave.get() : m_out.write.get(), STDOUT_FILENO);
        ::dup2(m_err.write.get(), STDERR_FILENO);
        for (Descriptor* const doubled : {&m_in.read, &m_out.write, &m_err.write, &m_slave}) {
            doubled->reset();
        }
        std::exit(call(body));
    }

    int call(const Body& body)
    {
        std::signal(SIGPIPE, SIG_IGN); // as in main
        Signals signals;
        const auto status = body(services, signals);
        if (!status) {
            write_own(status.error().text + "\n");
        }
        write_all(m_report.write.get(),
                  fmt::format("{}\n{}", fmt::join(services.steps.requests, ", "),
                              ::lseek(STDIN_FILENO, 0, SEEK_CUR)));
        return status ? *status : static_cast<int>(exit_status_of(status.error().kind));
    }

    int keyboard() const { return m_master ? m_master.get() : m_in.write.get(); }
    Descriptor& screen() { return m_master ? m_master : m_out.read; }

    static bool read_until(const Descriptor& from, std::string& text, std::string_view expected)
    {
        while (text.find(expected) == std::string::npos) {
            std::array<char, 4096> bytes{};
            if (!from || !is_readable(from.get())) {
                return false;
            }
            const ssize_t count = ::read(from.get(), bytes.data(), bytes.size());
            if (count <= 0) { // a terminal ends with EIO
                return false;
            }
            text.append(bytes.data(), static_cast<std::size_t>(count));
        }
        return true;
    }

    std::string m_directory;
    std::deque<Supervisor> m_supervisors; ///< stable references
    std::vector<int> m_clients;
    Pipe m_in, m_out, m_err, m_report;
    Descriptor m_master, m_slave;
    std::string m_stdout, m_stderr, m_reported;
    pid_t m_pid = -1;
};

inline Job running_job(const Run& run, std::uint32_t id)
{
    Job job;
    job.id = JobId{id};
    job.comment = job_comment(run.key);
    job.state = JobState::running;
    job.started_at = run.submitted_at;
    return job;
}

/// A run with job 7, as recorded by the client that started it.
inline Run recorded_run(ScriptedClient& client, Input input = Input::none)
{
    Run run = fakes::some_run(client.services.time.now(), "train");
    run.request.input = input;
    client.services.steps.jobs = {running_job(run, 7)};
    (void)fakes::RunOnDisk(*client.store, run).submitted(JobId{7}, /*batch=*/false);
    return run;
}

} // namespace gpuq::cli
