// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/fnv.h"
#include "core/layout.h"
#include "fakes/local_step.h"
#include "io/local_socket.h"
#include "ports/cluster.h"
#include "posix/store.h"
#include "runs/records/journal.h"
#include "runs/records/record.h"
#include "supervisor/base/command_line.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/helper_work.h"
#include "supervisor/stream/server.h"
#include "supervisor/supervise.h"
#include "wire/frame.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <poll.h>
#include <random>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/// A supervisor in real processes, with real files, sockets and programs; only Slurm is a model.
namespace gpuq::supervisor {

using namespace std::chrono_literals;

constexpr auto k_test_patience = 20s;

class RealClock : public Clock {
public:
    Time now() override
    {
        return std::chrono::time_point_cast<std::chrono::microseconds>(
            std::chrono::system_clock::now());
    }
    std::chrono::steady_clock::time_point steady() override
    {
        return std::chrono::steady_clock::now();
    }
};

/// True if `condition` becomes true within k_test_patience.
inline bool eventually(const std::function<bool()>& condition)
{
    const auto until = std::chrono::steady_clock::now() + k_test_patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        ::poll(nullptr, 0, 2);
    }
    return true;
}

inline std::string contents(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// True if the process does not exist or is a zombie.
inline bool is_gone(pid_t pid)
{
    const std::string status = contents("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = status.rfind(')');
    return name_end == std::string::npos || status.substr(name_end + 2, 1) == "Z";
}

inline void put(const std::filesystem::path& path, const std::string& text)
{
    std::ofstream(path, std::ios::binary) << text;
}

/// A model of Slurm in files, for processes that share nothing else.
///   `state`     a JobState as a number; if missing, job() is unreachable
///   `ends_at`   microseconds
///   `walltime`  minutes
///   `grace`     grace time of queue `gpu` in seconds; if missing, partitions() fails
///   `started`   microseconds
///   `down`      while it exists, complete() is unreachable
///   `deaf`      while it exists, jobs cannot be submitted, cancelled or listed
///   `jobs/ID`   comment of a pending job
///   `slow`      while it exists, a note gets no response
///   `elsewhere` sh script that replaces a step on the other nodes
///   `oom_job`   number of the job's processes that the kernel killed for lack of memory
///   `oom_node`  the same number for the node
///   `calls`     log of the calls, one per line
class SlurmModel : public Cluster {
public:
    explicit SlurmModel(std::filesystem::path directory)
        : m_directory(std::move(directory))
    {
    }
    Result<Job> job(JobId id) override
    {
        log("job");
        if (std::filesystem::exists(file_of(id))) {
            Job waiting;
            waiting.id = id;
            waiting.state = JobState::pending;
            return waiting;
        }
        const std::string state = contents(m_directory / "state");
        if (state.empty()) {
            return fail(Error::Kind::unreachable, "down");
        }
        Job job;
        job.id = id;
        job.state = static_cast<JobState>(std::stoi(state));
        if (is_over(job.state)) { // a job whose last process has not exited yet
            job.outcome = std::exchange(job.state, JobState::completing);
        }
        if (const std::string ends_at = contents(m_directory / "ends_at"); !ends_at.empty()) {
            job.ends_at = Time{std::chrono::microseconds{std::stoll(ends_at)}};
        }
        if (const std::string walltime = contents(m_directory / "walltime"); !walltime.empty()) {
            job.walltime = std::chrono::minutes{std::stoi(walltime)};
        }
        if (const std::string started = contents(m_directory / "started"); !started.empty()) {
            job.started_at = Time{std::chrono::microseconds{std::stoll(started)}};
        }
        return job;
    }
    Result<void> complete(JobId id, int status) override
    {
        if (std::filesystem::exists(m_directory / "down")) {
            log("complete while down");
            return fail(Error::Kind::unreachable, "down");
        }
        log("complete " + std::to_string(id.value) + " " + std::to_string(status));
        return {};
    }
    Result<std::string> name() override { return no(); }
    Result<Controller> controller() override { return no(); }
    Result<void> set_walltime(JobId, std::chrono::minutes) override { return no(); }
    Result<std::vector<Partition>> partitions() override
    {
        log("partitions");
        const std::string grace = contents(m_directory / "grace");
        if (grace.empty()) {
            return no();
        }
        Partition queue;
        queue.name = "gpu";
        queue.grace = std::chrono::seconds{std::stoi(grace)};
        return std::vector{queue};
    }
    Result<std::vector<Node>> nodes() override { return no(); }
    Result<Inventory> inventory() override { return no(); }
    Result<AllJobs> all_jobs() override { return no(); }
    Result<std::vector<Job>> own_jobs() override
    {
        TRY(answers("list"));
        std::vector<Job> jobs;
        for (const auto& entry : std::filesystem::directory_iterator(m_directory / "jobs")) {
            Job job;
            job.id.value = static_cast<std::uint32_t>(std::stoul(entry.path().filename()));
            job.state = JobState::pending;
            job.comment = contents(entry.path());
            jobs.push_back(job);
        }
        return jobs;
    }
    Result<bool> has_first_step(JobId) override { return no(); }
    Result<Started> start_now(const JobSpec&, const std::vector<std::string>&, bool,
                              const Before&) override
    {
        return no();
    }
    Result<JobId> submit(const JobSpec& spec, const std::string&,
                         const std::vector<std::string>&) override
    {
        TRY(answers("submit " + spec.comment));
        JobId id{43};
        while (std::filesystem::exists(file_of(id))) {
            ++id.value;
        }
        // The caller may be killed at any time: Slurm has the complete job or none.
        const std::filesystem::path asked = m_directory / ("asked-" + std::to_string(::getpid()));
        put(asked, spec.comment);
        std::filesystem::rename(asked, file_of(id));
        return id;
    }
    Result<StepProcess> start_step(JobId, const std::vector<std::string>&, bool) override
    {
        return no();
    }
    Result<StepProcess> start_step_elsewhere(JobId id, const std::vector<std::string>& step,
                                             int nodes) override
    {
        log("elsewhere " + std::to_string(id.value) + " of " + std::to_string(nodes) + " " +
            step.at(1) + " " + step.at(5));
        const std::string stand_in = contents(m_directory / "elsewhere");
        return stand_in.empty() ? Result<StepProcess>(fail(Error::Kind::usage, "no srun in PATH"))
                                : fakes::start_local_step({"/bin/sh", "-c", stand_in}, false);
    }
    void abandon(const StepProcess&) override {}
    Result<void> cancel_called(const std::string&) override { return no(); }
    Result<std::vector<Reservation>> reservations() override { return no(); }
    Result<void> reserve(const ReservationSpec&) override { return no(); }
    Result<void> remove_reservation(const std::string&) override { return no(); }
    Result<void> end_reservation(const std::string&) override { return no(); }
    Result<void> cancel(JobId id) override
    {
        TRY(answers("cancel " + std::to_string(id.value)));
        std::filesystem::remove(file_of(id));
        return {};
    }

private:
    static Error no() { return fail(Error::Kind::internal, "a supervisor never asks this"); }
    std::filesystem::path file_of(JobId id) const
    {
        return m_directory / "jobs" / std::to_string(id.value);
    }
    Result<void> answers(const std::string& question)
    {
        log(question);
        return std::filesystem::exists(m_directory / "deaf")
                   ? fail(Error::Kind::unreachable, "deaf")
                   : Result<void>{};
    }
    void log(const std::string& line)
    {
        std::ofstream(m_directory / "calls", std::ios::app) << line << "\n";
    }
    std::filesystem::path m_directory;
};

/// The client side of a connection: sends frames and records those received.
class Client {
public:
    Client(Descriptor from, Descriptor to)
        : m_from(std::move(from))
        , m_to(std::move(to))
    {
    }
    explicit Client(Descriptor socket)
        : m_from(std::move(socket))
    {
    }

    std::string out, err;    ///< without gaps
    std::string interleaved; ///< `o` or `e` and the bytes, for each change of stream
    std::uint64_t out_at = 0, err_at = 0;
    std::optional<wire::Hello> hello;
    std::optional<wire::Started> started;
    std::optional<wire::Ended> ended;
    std::optional<wire::StdinTaken> taken;
    std::uint64_t signals_taken = 0;
    std::vector<std::string> notes;
    std::optional<std::string> screen, taken_by, refused;
    bool closed = false;
    bool overlapped = false; ///< an output frame began before the end of the previous one
    bool keep_output = true;

    void send(const wire::Frame& frame)
    {
        const std::string bytes = wire::encode(frame);
        const int fd = m_to ? m_to.get() : m_from.get();
        EXPECT_TRUE(write_all(fd, bytes));
    }
    void send_bytes(const std::string& bytes)
    {
        EXPECT_TRUE(write_all(m_to ? m_to.get() : m_from.get(), bytes));
    }
    /// Reads the data available now.
    void read_more()
    {
        pollfd wait{m_from.get(), POLLIN, 0};
        while (!closed && ::poll(&wait, 1, 0) > 0) {
            read_some();
        }
    }
    bool reads_until(const std::function<bool()>& condition)
    {
        const auto until = std::chrono::steady_clock::now() + k_test_patience;
        while (!condition()) {
            pollfd wait{m_from.get(), POLLIN, 0};
            if (closed || std::chrono::steady_clock::now() > until) {
                return false;
            }
            if (::poll(&wait, 1, 100) > 0) {
                read_some();
            }
        }
        return true;
    }
    bool reads_to_the_end()
    {
        return reads_until([this] { return ended.has_value(); });
    }
    void close_output() { m_from.reset(), closed = true; }
    void close_input() { m_to.reset(); }
    void close_all()
    {
        close_output();
        close_input();
    }
    int from() const { return m_from.get(); }

private:
    void read_some()
    {
        static char piece[256 << 10];
        const ssize_t size = ::read(m_from.get(), piece, sizeof piece);
        if (size <= 0) {
            closed = true;
            return;
        }
        m_decoder.feed(std::string_view(piece, static_cast<std::size_t>(size)));
        while (true) {
            auto frame = m_decoder.next();
            ASSERT_TRUE(frame);
            if (!*frame) {
                return;
            }
            std::visit([this](const auto& each) { take(each); }, **frame);
        }
    }
    void take(const wire::Output& frame)
    {
        const bool is_out = frame.stream == Stream::out;
        std::uint64_t& at = is_out ? out_at : err_at;
        overlapped = overlapped || frame.offset < at;
        at = frame.offset + frame.bytes.size();
        if (!keep_output) {
            return;
        }
        (is_out ? out : err) += frame.bytes;
        const char mark = is_out ? 'o' : 'e';
        if (m_last != mark) {
            interleaved += mark;
            m_last = mark;
        }
        interleaved += frame.bytes;
    }
    void take(const wire::Hello& frame) { hello = frame; }
    void take(const wire::Started& frame) { started = frame; }
    void take(const wire::Ended& frame) { ended = frame; }
    void take(const wire::StdinTaken& frame) { taken = frame; }
    void take(const wire::SignalTaken& frame) { signals_taken = frame.place; }
    void take(const wire::Screen& frame) { screen = frame.bytes; }
    void take(const wire::Taken& frame) { taken_by = frame.by; }
    void take(const wire::Refused& frame) { refused = frame.why; }
    void take(const wire::Note& frame) { notes.push_back(frame.text); }
    template <typename Other>
    void take(const Other&)
    {
        ADD_FAILURE() << "a client's frame came from the supervisor";
    }

    Descriptor m_from, m_to;
    wire::Decoder m_decoder;
    char m_last = 0;
};

/// Unique for each stage: tests run in parallel, and a guard kills every process on this machine
/// with its run's key in the environment.
inline RunKey new_key()
{
    std::random_device device;
    std::array<unsigned char, 8> random;
    std::generate(random.begin(), random.end(),
                  [&] { return static_cast<unsigned char>(device()); });
    return RunKey::make(
        std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()), random);
}

/// One run with its supervisor, its state directory and its model of Slurm.
class Stage {
public:
    explicit Stage(std::vector<std::string> program, std::optional<Pty> pty = std::nullopt)
        : run{new_key()}
        , m_root(make_root())
        , options{.state_dir = m_root / "state", .key = run.key}
    {
        run.request.program = std::move(program);
        run.request.pty = pty;
        run.request.input = pty ? Input::terminal : run.request.input;
        run.request.name = "test";
        run.request.queue = "gpu";
        run.request.walltime = std::chrono::minutes{60};
        run.request.work_dir = m_root;
        run.submitted_at = Time{};
        ::signal(SIGPIPE, SIG_IGN);
        options.first = true;
        options.job = JobId{42};
        options.node = "n1";
        // Stages run in parallel: each has socket names of its own.
        options.names = NodeNames(fmt::format("{0:016x}{0:016x}", fnv1a(m_root.string())));
        options.patience.stalled = 500ms;
        options.patience.closing = 300ms;
        options.patience.leftover_output = 100ms;
        std::filesystem::create_directories(m_root / "slurm" / "jobs");
        std::filesystem::create_directories(m_root / "state" / layout::inbox(run.key));
    }
    static Stage shell(const std::string& text) { return Stage({"/bin/sh", "-c", text}); }
    Stage(Stage&&) = delete;
    ~Stage()
    {
        if (m_guardian > 0) {
            ::kill(m_guardian, SIGKILL);
            ::waitpid(m_guardian, nullptr, 0);
        }
        // A supervisor without its guardian still cleans up.
        eventually([this] {
            std::error_code error;
            std::filesystem::remove_all(m_root, error);
            return !error;
        });
    }

    gpuq::Run run;
    std::chrono::seconds kill_wait{30};

private:
    std::filesystem::path m_root;

public:
    Options options;

    /// Writes run.json and starts the supervisor. Returns the client on its standard streams.
    Client begin()
    {
        put(state(layout::run_json(run.key)), to_json(run));
        return begin_as_it_is();
    }
    Client begin_as_it_is()
    {
        Pipe in = make_pipe().value();
        Pipe out = make_pipe().value();
        m_guardian = ::fork();
        if (m_guardian == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(in.read.get(), 0);
            ::dup2(out.write.get(), 1);
            // Like a newly executed program: none of the test's descriptors are open.
            for (int fd = 3; fd < 256; ++fd) {
                ::close(fd);
            }
            ::_exit(supervised());
        }
        return Client(std::move(out.read), std::move(in.write));
    }

    /// Starts the supervisor below a process that exits when `ended` is true.
    void begin_below(const std::function<bool()>& ended)
    {
        put(state(layout::run_json(run.key)), to_json(run));
        const pid_t parent = ::fork();
        if (parent == 0) {
            if (::fork() == 0) {
                ::_exit(supervised());
            }
            eventually(ended);
            ::_exit(0);
        }
        EXPECT_TRUE(eventually([&] { return ::waitpid(parent, nullptr, WNOHANG) == parent; }));
    }

    Client attach(wire::Role role = wire::Role::viewer, std::uint64_t out = 0,
                  std::uint64_t err = 0)
    {
        Descriptor socket = connect();
        const bool connected = static_cast<bool>(socket);
        EXPECT_TRUE(connected);
        Client client(std::move(socket));
        if (connected) {
            client.send(wire::Attach{wire::k_version, role, out, err});
        }
        return client;
    }
    Descriptor connect()
    {
        Descriptor socket;
        eventually([&] {
            auto connected = connect_to_first(socket_names(options));
            if (connected) {
                socket = *std::move(connected);
            }
            return static_cast<bool>(socket);
        });
        return socket;
    }

    /// Waits for the process that Slurm started. Returns its exit status.
    int wait()
    {
        int status = -1;
        const bool over =
            eventually([&] { return ::waitpid(m_guardian, &status, WNOHANG) == m_guardian; });
        EXPECT_TRUE(over) << "the supervisor does not end";
        m_guardian = over ? -1 : m_guardian;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    /// Exit status of the process of another job submitted for the same run.
    int status_of_another(JobId job)
    {
        const pid_t other = ::fork();
        if (other == 0) {
            options.job = job;
            ::_exit(supervised());
        }
        int status = -1;
        EXPECT_TRUE(eventually([&] { return ::waitpid(other, &status, WNOHANG) == other; }));
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    pid_t guardian() const { return m_guardian; }
    /// Pid of the supervisor, as recorded in the journal.
    pid_t supervisor()
    {
        int pid = -1;
        eventually([&] {
            for (const Event& event : events()) {
                pid = event.kind == Event::Kind::supervisor_started ? event.pid.value_or(-1) : pid;
            }
            return pid > 0;
        });
        return pid;
    }

    std::filesystem::path root() const { return m_root; }
    std::filesystem::path state(const std::string& path) const { return m_root / "state" / path; }
    std::filesystem::path link_file(const std::string& name) const
    {
        return state(layout::link_dir(run.key, options.link)) / name;
    }
    std::vector<Event> events() const
    {
        return parse_journal(contents(state(layout::journal(run.key, options.link))));
    }
    std::optional<Event> event(Event::Kind kind) const
    {
        for (const Event& event : events()) {
            if (event.kind == kind) {
                return event;
            }
        }
        return std::nullopt;
    }
    /// Waits for the event in the journal.
    Event awaited(Event::Kind kind) const
    {
        EXPECT_TRUE(eventually([&] { return event(kind).has_value(); }));
        return event(kind).value_or(Event{});
    }
    std::string slurm_calls() const { return contents(m_root / "slurm" / "calls"); }
    void slurm(const std::string& file, const std::string& text) const
    {
        put(m_root / "slurm" / file, text);
    }

    /// The process that `Helper::execute` starts from this executable.
    static int help(const std::vector<std::string>& arguments)
    {
        const auto line = parse_command_line(
            arguments, [](const char*) { return std::nullopt; }, "n1");
        RealClock clock;
        Services services =
            services_in(std::filesystem::path(line->options.state_dir).parent_path(), clock);
        return supervisor::help(services, line->options);
    }

private:
    static Services services_in(const std::filesystem::path& root, Clock& clock)
    {
        return {clock,
                [root]() -> Result<std::unique_ptr<Cluster>> {
                    return std::unique_ptr<Cluster>(std::make_unique<SlurmModel>(root / "slurm"));
                },
                [](const Request& request) { return request.program; },
                [] { return std::chrono::seconds(30); },
                [](const std::string& directory) -> Result<std::unique_ptr<Store>> {
                    TRY_ASSIGN(auto store, PosixStore::open(directory));
                    return std::unique_ptr<Store>(std::move(store));
                },
                [root](JobId job, const std::string& comment, JobEnd end) -> Result<void> {
                    std::ofstream(root / "slurm" / "calls", std::ios::app)
                        << (end == JobEnd::over ? "late note " : "note ") << job.value << " "
                        << comment << "\n";
                    while (std::filesystem::exists(root / "slurm" / "slow")) {
                        ::poll(nullptr, 0, 10);
                    }
                    return {};
                }};
    }
    static std::filesystem::path make_root()
    {
        std::string name = testing::TempDir() + "gpuq-supervisor-XXXXXX";
        return ::mkdtemp(name.data());
    }
    int supervised()
    {
        RealClock clock;
        Services services = services_in(m_root, clock);
        services.kill_wait = [this] { return kill_wait; };
        services.memory = [this] { return memory(); };
        return supervise(services, options);
    }
    MemoryCounts memory() const
    {
        MemoryCounts counts;
        if (const std::string job = contents(m_root / "slurm" / "oom_job"); !job.empty()) {
            counts.job = {{"job", std::stoull(job)}};
        }
        if (const std::string node = contents(m_root / "slurm" / "oom_node"); !node.empty()) {
            counts.node = std::stoull(node);
        }
        return counts;
    }
    pid_t m_guardian = -1;
};

/// Leaves the supervisor no free descriptor during the object's lifetime.
class NoneLeft {
public:
    explicit NoneLeft(pid_t supervisor)
        : m_supervisor(supervisor)
    {
        ::prlimit(m_supervisor, RLIMIT_NOFILE, nullptr, &m_before);
        allow(first_unused());
    }
    NoneLeft(NoneLeft&&) = delete;
    ~NoneLeft() { allow(m_before.rlim_cur); }

    void allow(rlim_t count) const
    {
        const rlimit limit{count, m_before.rlim_max};
        EXPECT_EQ(::prlimit(m_supervisor, RLIMIT_NOFILE, &limit, nullptr), 0);
    }

private:
    rlim_t first_unused() const
    {
        const std::filesystem::path directory = "/proc/" + std::to_string(m_supervisor) + "/fd";
        rlim_t number = 0;
        while (std::filesystem::is_symlink(directory / std::to_string(number))) {
            ++number;
        }
        return number;
    }
    pid_t m_supervisor;
    rlimit m_before{};
};

} // namespace gpuq::supervisor
