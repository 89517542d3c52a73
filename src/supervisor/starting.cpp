// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "core/exit_status.h"
#include "core/layout.h"
#include "io/network_socket.h"
#include "log/log.h"
#include "runs/records/network_login.h"
#include "supervisor/base/job_environment.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/base/rank_notes.h"
#include "supervisor/base/start_ranks.h"
#include "supervisor/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <malloc.h>
#include <set>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

/// Takes a standard stream over, so that it ends when its connection does.
Descriptor taken_stream(int fd)
{
    Descriptor stream(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::dup2(null.get(), fd);
    return stream;
}

/// For a run whose client had no terminal: almost all terminals understand it.
constexpr const char* k_terminal_type = "xterm-256color";
/// Messages of other processes that are recorded, each once.
constexpr std::size_t k_most_reports = 20;

} // namespace

void Supervisor::open_records(const std::optional<LinkStart>& link_start)
{
    LogWriter::Setup setup;
    setup.job = m_options.job.value_or(JobId{});
    setup.retry = m_options.patience.log_retry;
    std::optional<std::string> problem;
    auto directory = RunDirectory::open(m_options.state_dir, m_options.key);
    auto run = directory ? directory->read_run() : Result<Run>(directory.error());
    if (run) {
        m_run = *std::move(run);
        join_chain(link_start);
        keep_idle_rule(directory->idle_rules());
        setup.exemptible = m_idle.has_value();
        directory->make("checkpoints");
        if (auto link = directory->link(m_options.link)) {
            setup.files.directory = *std::move(link);
            m_use.set_directory(
                Descriptor(::fcntl(setup.files.directory.get(), F_DUPFD_CLOEXEC, 3)));
        }
        setup.files.open();
        setup.directory = *std::move(directory);
        if (m_chain) {
            setup.next = LinkNumber{m_options.link.value + 1};
        }
        if (setup.files.used()) {
            setup.files = {};
            not_started(
                {static_cast<int>(ExitStatus::lost),
                 "this job has already run, perhaps it was requeued; gpuq runs no job twice"});
        } else if (m_services.secrets != nullptr) {
            m_credentials.fetch(*m_services.secrets, *setup.directory, *m_run, m_options,
                                m_services.clock.now());
        }
    } else if (run.error().kind == Error::Kind::missing) {
        not_started({static_cast<int>(ExitStatus::internal),
                     fmt::format("node {} does not see {} ({}); the state directory must be on a "
                                 "file system that the nodes share, see state_dir in man gpuq",
                                 m_options.node, m_options.state_dir, run.error().text)});
    } else {
        not_started({static_cast<int>(ExitStatus::internal), run.error().text});
    }
    m_log = std::make_unique<LogWriter>(std::move(setup), m_output.backlog, m_services.clock,
                                        m_loop.waker());
}

void Supervisor::start(const std::optional<LinkStart>& link_start)
{
    // One arena, because the log writer frees memory allocated by the loop.
    ::mallopt(M_ARENA_MAX, 1);
    become_subreaper();
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN); // a limit of the node on file sizes is an error of the write
    m_memory.emplace(m_services.memory());
    open_records(link_start);
    m_clients = std::make_unique<Clients>(
        m_loop, m_output.backlog, m_input, *m_log,
        wire::Hello{wire::k_version, m_options.key.text(), m_options.link.value,
                    m_options.job.value_or(JobId{}).value, m_options.node},
        Clients::Requests{
            [this](int number) { signal_program(number); },
            [this](const std::string& by) { stop(by); },
            [this](TerminalSize size, bool anew) {
                if (m_program && !m_observed.wait_status) {
                    m_terminal.resize(*m_program, size, anew);
                }
            },
            [this](TerminalSize size) { return m_terminal.screen(m_output.backlog, size); },
            [this, known = std::set<std::string>()](const std::string& text) mutable {
                if (known.size() < k_most_reports && known.insert(text).second) {
                    journal(Event::Kind::other_user, text);
                }
            }},
        m_run && m_run->request.pty ? Clients::Typing::terminals : Clients::Typing::one_owner);
    m_clients->greet_with(m_credentials.problem());
    if (m_options.first) {
        m_clients->add_first(taken_stream(STDIN_FILENO), taken_stream(STDOUT_FILENO));
    }
    if (m_run && !m_observed.not_started) {
        limit_time(*m_run);
    }
    Event started = event(Event::Kind::supervisor_started);
    started.pid = ::getpid();
    started.host = m_options.node;
    started.address = listen_on_network();
    if (!m_options.partition.empty()) {
        started.detail = m_options.partition;
    }
    if (m_options.job) {
        started.job = m_options.job->value;
    }
    if (m_limit) {
        started.to = m_limit->unix_time();
    }
    m_log->record(started);
    if (!m_credentials.problem().empty()) {
        journal(Event::Kind::credentials, m_credentials.problem());
    }
    for (const std::string& text : m_credentials.taken()) {
        journal(Event::Kind::other_user, text);
    }
    report_link_start();
    if (m_run && !m_observed.not_started) {
        if (auto reason = start_program(*m_run)) {
            not_started(*std::move(reason));
        }
    }
    // The start of the program need not wait for the server.
    std::vector<Error> taken;
    auto server = Server::listen(socket_names(m_options), taken);
    for (const Error& error : taken) {
        journal(Event::Kind::other_user, error.text + "; its socket gets another name");
    }
    if (server) {
        m_clients->listen(*std::move(server));
    } else {
        m_clients->note("no client can attach to this run: " + server.error().text);
    }
    m_log->start();
    m_term.kill_wait = m_services.kill_wait();
    if (m_program && m_run->request.input == Input::pipe && !m_clients->had_owner()) {
        m_clients->expect_owner();
    }
}

/// For clients on other hosts, if the user wants to spare them the way through Slurm. Returns the
/// address.
std::optional<std::string> Supervisor::listen_on_network()
{
    if (!m_run || !m_run->request.network || !m_options.names.has_secret()) {
        return std::nullopt;
    }
    auto server = Server::listen_on_network(m_options.launch_address);
    if (!server) {
        log::warning(log::Part::supervisor, "no port for clients: {}", server.error().text);
        return std::nullopt;
    }
    const std::string address = address_of_listener(server->fd());
    m_clients->listen_on_network(*std::move(server), [this] {
        return NetworkLogin(m_options.names, m_options.key, m_options.link, random_nonce());
    });
    return address;
}

void Supervisor::limit_time(const Run& run)
{
    const Time start = m_services.clock.now();
    auto length = run.request.walltime;
    auto ends_at = m_options.ends_at;
    std::optional<TimeLimit::LinkEnd> link;
    if (m_chain) {
        length = std::chrono::floor<std::chrono::minutes>(m_chain->link_start().length);
        link = {start + m_chain->link_start().length, ends_at};
        ends_at = ends_at ? std::min(*ends_at, link->at) : link->at;
    }
    m_limit.emplace(Deadline(start, length, ends_at), link, run.request.walltime,
                    now() + m_options.patience.first_query);
}

std::optional<NotStarted> Supervisor::start_program(const Run& run)
{
    if (const auto stop_json = m_log->stop_request_now()) {
        m_leaving.stop_asked = requester_of(stop_json);
        m_observed.termination =
            Termination{Cause::stopped, "by " + *m_leaving.stop_asked + " before it began"};
        m_progress.phase = Phase::leftovers;
        return std::nullopt;
    }
    Program::Plan plan;
    plan.argv = has_ranks(run.request) ? rank_arguments(run) : program_arguments(run);
    plan.environment = environment(run);
    plan.work_dir = run.request.work_dir;
    plan.limits = run.limits;
    plan.with_input = run.request.input != Input::none;
    if (run.request.pty) {
        plan.terminal = run.request.pty->size;
    }
    auto program = Program::start(plan);
    if (!program) {
        return NotStarted{static_cast<int>(ExitStatus::internal), program.error().text};
    }
    m_program = *std::move(program);
    m_input.open(&m_program->input());
    if (run.request.pty && run.request.pty->shell) {
        m_abandonment.emplace(now(), Abandonment::Limits{m_options.patience.unclaimed_shell,
                                                         m_options.patience.idle_shell});
    }
    return std::nullopt;
}

std::vector<std::string> Supervisor::rank_arguments(const Run& run)
{
    if (m_options.sampler.empty()) { // the executable is not available
        return srun_of_ranks(program_arguments(run), run.request, {});
    }
    if (m_use.directory() >= 0) {
        make_rank_notes(m_use.directory());
    }
    const Request& request = run.request;
    const std::string directory = layout::link_dir(m_options.key, m_options.link);
    const bool is_chosen = std::any_of(request.setup.env.begin(), request.setup.env.end(),
                                       [](const auto& pair) { return pair.first == "TMPDIR"; });
    const auto member = member_arguments(
        {own_program(), fmt::format("{}/{}", m_options.state_dir, directory), m_options.node,
         request.gpus.count, tasks_on_node(request), request.gpus_per_task.value_or(0),
         is_chosen ? std::string() : m_options.tmp});
    return start_ranks_arguments(own_program(), m_options.node,
                                 srun_of_ranks(program_arguments(run), request, member));
}

std::vector<std::string> Supervisor::environment(const Run& run)
{
    Environment variables = Environment::own();
    describe_job(variables, run);
    variables.set("GPUQ_DEADLINE", std::to_string(m_limit->unix_time()));
    if (!m_options.tmp.empty() && !has_ranks(run.request)) {
        variables.set("TMPDIR", m_options.tmp);
    }
    if (run.request.pty) {
        variables.set_default("TERM", k_terminal_type);
        variables.unset("COLUMNS"); // those of the terminal in which the client was started
        variables.unset("LINES");
    }
    if (m_credentials.cache()) {
        variables.set("KRB5CCNAME", *m_credentials.cache());
    }
    if (m_credentials.token()) {
        variables.set("BEARER_TOKEN_FILE", *m_credentials.token());
        variables.unset("BEARER_TOKEN"); // it would take precedence and never change
    }
    describe_run(variables, run, m_options.link, m_options.state_dir);
    describe_link_start(variables);
    m_ranks.port = MeetingPort::hold();
    describe_meeting(variables, run, m_options.link, m_options.job.value_or(JobId{}),
                     m_ranks.port ? std::optional(m_ranks.port->number()) : std::nullopt);
    return variables.texts();
}

void Supervisor::not_started(NotStarted reason)
{
    // Sent over the first connection; the stderr of a batch job is read by nothing else.
    if (!m_options.first) {
        write_all(STDERR_FILENO, "gpuq: " + reason.detail + "\n");
    }
    m_observed.not_started = std::move(reason);
    if (!m_program) {
        m_progress.phase = Phase::leftovers;
    }
}

} // namespace gpuq::supervisor
