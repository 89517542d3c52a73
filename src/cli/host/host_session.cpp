// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/host_session.h"

#include "cli/base/message.h"
#include "cli/base/printable.h"
#include "cli/base/signals.h"
#include "cli/base/table_output.h"
#include "cli/client/log_copy.h"
#include "cli/host/editor.h"
#include "cli/queries/site_context.h"
#include "core/key.h"
#include "core/quote.h"
#include "core/split_arguments.h"
#include "io/descriptor.h"
#include "ports/clock.h"
#include "remote/client.h"
#include "remote/forward.h"
#include "remote/libssh/transport.h"
#include "remote/peer_data.h"
#include "remote/verb_process.h"
#include "term/raw_terminal.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

// Everything about `gpuq --host` that depends on the verb: its arguments and variables on the host,
// the terminal, the ports to forward, and how to continue when the session on the host is lost
// (in_its_place). remote::Client does the rest.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
namespace frames = wire::remote;

constexpr std::chrono::seconds k_patience = 3h;
constexpr auto k_repeat_message = 1min;
/// Outages that last longer are reported: most are shorter.
constexpr auto k_short_outage = 5s;
/// Time for the first response if no user can type a password: to connect, to authenticate, and to
/// start a login shell.
constexpr auto k_first_answer = 30s;

/// The user's terminal, or the pipes in its place.
class TerminalOrPipes : public remote::UserInterface {
public:
    /// `behind_ssh`: gpuq is the ProxyCommand of another program, which owns the screen.
    TerminalOrPipes(bool quiet, bool raw, bool behind_ssh)
        : m_quiet(quiet)
        , m_lends(raw)
        , m_behind_ssh(behind_ssh)
        , m_terminal(STDIN_FILENO, STDOUT_FILENO)
    {
    }

    int signals() const override { return m_signals.descriptor(); }
    std::optional<int> next_signal() override { return m_signals.next(); }
    bool resized() override
    {
        const bool changed = m_signals.terminal_changed();
        if (changed) {
            m_terminal.continued();
        }
        return changed;
    }
    std::optional<TerminalSize> size() const override { return m_terminal.size(); }
    void lend_terminal() override
    {
        if (m_lends) {
            m_terminal.enter();
        }
    }
    void take_terminal_back() override { m_terminal.leave(); }
    void watch(std::string_view bytes) override { m_terminal.watch(bytes); }
    void print_message(std::string_view message) override
    {
        if (!m_quiet) {
            cli::print_message(message, cursor());
        }
    }

    /// In raw mode, shows the state in the last row until the connection is restored. Otherwise
    /// prints a line when the outage is no longer short, one each minute, and one at its end; as a
    /// ProxyCommand, only the first.
    void show_state(std::string_view message) override
    {
        const auto now = std::chrono::steady_clock::now();
        if (message.empty()) {
            m_lost_at.reset();
            if (std::exchange(m_state_shown, false)) {
                if (m_terminal.is_raw()) {
                    clear_last_row();
                } else if (!m_behind_ssh) {
                    print_message("connected again");
                }
            }
            return;
        }
        if (m_quiet) {
            return;
        }
        if (m_terminal.is_raw()) {
            show_in_row(message);
            m_state_shown = true;
            return;
        }
        m_lost_at = m_lost_at.value_or(now);
        const bool first = !m_state_shown && now - *m_lost_at >= k_short_outage;
        const bool again = m_state_shown && !m_behind_ssh && now - m_printed_at >= k_repeat_message;
        if (first || again) {
            print_message(message);
            m_printed_at = now;
            m_state_shown = true;
        }
    }

    void show_request(std::string_view message) override
    {
        if (m_terminal.is_raw()) {
            show_in_row(message);
        } else {
            cli::print_message(message);
        }
        m_state_shown = true;
    }
    void begin_own_keys() override { m_terminal.begin_own_keys(); }
    void end_own_keys() override { m_terminal.end_own_keys(); }

    void show_ssh(std::string_view line) override
    {
        if (::isatty(STDERR_FILENO) == 1) {
            line.remove_suffix(line.ends_with('\r') ? 1 : 0); // ssh ends lines as for a raw
                                                              // terminal
            const std::string text = remote::peer_text(line) + "\n";
            (void)!::write(STDERR_FILENO, text.data(), text.size());
        }
    }

private:
    Cursor cursor() const
    {
        if (!m_terminal.is_raw()) {
            return Cursor::line_start;
        }
        return m_terminal.on_other_screen() ? Cursor::other_screen : Cursor::raw;
    }

    /// The user's screen: stderr may be a file. In raw mode, stdout is a terminal.
    static int screen() { return ::isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : STDOUT_FILENO; }

    /// The connection may have broken in the middle of anything: first ends a string, and an update
    /// that the terminal holds back until it is complete.
    static void show_in_row(std::string_view message)
    {
        constexpr std::string_view k_ready = "\x1b\\\x1b[?2026l";
        (void)!::write(screen(), k_ready.data(), k_ready.size());
        show_in_last_row(screen(), message);
    }

    static void clear_last_row()
    {
        constexpr std::string_view k_clear = "\x1b"
                                             "7\x1b[999;1H\x1b[0m\x1b[2K\x1b"
                                             "8";
        (void)!::write(screen(), k_clear.data(), k_clear.size());
    }

    bool m_quiet;
    bool m_lends;
    bool m_behind_ssh;
    Signals m_signals;
    RawTerminal m_terminal;
    bool m_state_shown = false;
    std::chrono::steady_clock::time_point m_printed_at;
    std::optional<std::chrono::steady_clock::time_point> m_lost_at;
};

std::vector<std::string> variables_for_there(Services& services, const HostCall& call)
{
    static constexpr std::array k_names = {
        "TERM",     "COLORTERM", "NO_COLOR",        "COLUMNS",      "LANG",       "LC_ALL",
        "LC_CTYPE", "TZ",        "GPUQ_DETACH_KEY", "GPUQ_CLUSTER", "GPUQ_BUDGET"};
    std::vector<std::string> variables;
    for (const char* const name : k_names) {
        if (const auto value = services.variable(name)) {
            variables.push_back(fmt::format("{}={}", name, *value));
        }
    }
    variables.push_back(fmt::format("{}={}", remote::k_called, call.called));
    return variables;
}

/// $GPUQ_SSH: the command to use in place of `ssh`.
Result<std::vector<std::string>> ssh_of(Services& services)
{
    const auto line = services.variable("GPUQ_SSH");
    if (!line || line->empty()) {
        return std::vector<std::string>{"ssh"};
    }
    TRY_ASSIGN(std::vector<std::string> command, split_arguments(*line));
    if (command.empty()) {
        return fail(Error::Kind::usage, "GPUQ_SSH: empty command");
    }
    return command;
}

/// ssh to the host, and the program that it starts there.
Result<remote::SshCommand> ssh_command(const std::string& host, const Settings& settings,
                                       Services& services)
{
    remote::SshCommand ssh;
    TRY_ASSIGN(ssh.ssh, ssh_of(services));
    ssh.host = host;
    ssh.program = settings.remote_program.value_or("gpuq");
    TRY(remote::check_program(ssh.program));
    return ssh;
}

bool has_argument(const std::vector<std::string>& arguments, std::string_view argument)
{
    return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
}

std::string command_there(const HostCall& call, const std::string& rest)
{
    return fmt::format("{} {}", call.called, rest);
}

/// Whether both streams of a log are merged into one, as on a terminal, without messages of gpuq.
bool is_one_stream(const std::vector<std::string>& arguments)
{
    return has_argument(arguments, "--after");
}

std::vector<std::string> log_after(const HostCall& call, const frames::Start& start,
                                   const frames::Following& from,
                                   const remote::ClientOptions::Lost& lost)
{
    const std::uint64_t out = from.out + lost.out;
    if (is_one_stream(start.arguments)) {
        return log_again(call, {"--after", to_text(LogMark{out, 0, 0})}, from.key);
    }
    return log_again(call, {"--shown", fmt::format("{},{}", out, from.err + lost.err)}, from.key);
}

/// The command that replaces a lost session, if that is possible without doing anything twice.
Result<frames::Start> in_its_place(const HostCall& call, frames::Start start,
                                   const remote::ClientOptions::Lost& lost)
{
    const std::uint64_t shown = lost.out + lost.err;
    if (only_reads(call.verb) && shown == 0) {
        return start;
    }
    if (call.verb == "logs" && lost.following) {
        start.arguments = log_after(call, start, *lost.following, lost);
        return start;
    }
    if (!follows_run(call.verb) || !lost.following) {
        return fail(Error::Kind::lost,
                    fmt::format("the session on {} is lost ({} answers but does not know it), "
                                "after {} bytes of output{}",
                                call.place, sanitised(lost.host), shown,
                                only_reads(call.verb)
                                    ? "; to repeat it: " + command_there(call, call.verb + " ...")
                                    : ". The command may or may not have completed: " +
                                          command_there(call, "ls")));
    }
    start.arguments = global_arguments(call);
    start.arguments.emplace_back("attach");
    // On a terminal both streams are merged, and mixed with gpuq's own messages.
    const bool are_one = start.terminals[1] && start.terminals[2];
    if (!start.raw && !are_one) {
        start.arguments.insert(start.arguments.end(),
                               {"--shown", fmt::format("{},{},{}", lost.following->link,
                                                       lost.following->out + lost.out,
                                                       lost.following->err + lost.err)});
    }
    start.arguments.push_back(lost.following->key);
    return start;
}

/// The command that fetches the rest.
std::string copy_again(const HostCall& call)
{
    return fmt::format("{} {} --to {}", call.called, shell_command(call.arguments),
                       shell_quoted(call.copy_to));
}

/// Arguments for the rest of a log, into the file of --to.
Result<std::vector<std::string>> arguments_after(const LogCopy& copy, const HostCall& call)
{
    TRY_ASSIGN(const LogMark mark, copy.mark());
    return with_options(call, {"--after", to_text(mark)});
}

/// If the session is lost, a log must continue at the right byte: so no terminal on the host may
/// change the bytes or mix gpuq's own messages into them. On a terminal here the two streams are
/// merged, in their order.
void show_log(const HostCall& call, frames::Start& start)
{
    if (start.terminals[1] && start.terminals[2] && !call.timestamps) {
        start.arguments = with_options(call, {"--after", to_text(LogMark{})});
    }
    start.terminals = {};
    start.raw = false;
}

/// For a terminal in raw mode.
std::string with_returns(std::string_view lines)
{
    std::string text;
    for (const char c : lines) {
        text.append(c == '\n' ? "\r\n" : std::string_view(&c, 1));
    }
    return text;
}

/// Verbs print text and colours: nothing else that the host sends is written to a terminal here.
/// Output of programs and full-screen views passes unchanged.
void show_text_only(const HostCall& call, remote::ClientOptions& options)
{
    const bool text = prints_text(call);
    const std::array is_text{text, text || call.verb == "connect"};
    for (const std::size_t stream : {std::size_t{0}, std::size_t{1}}) {
        if (is_text[stream] && options.start.terminals[stream + 1]) {
            options.shown_as[stream] = [text = Printable(Printable::Lines::live),
                                        raw = options.start.raw](std::string_view bytes) mutable {
                const std::string shown = bytes.empty() ? text.end() : text.feed(bytes);
                return raw ? with_returns(shown) : shown;
            };
        }
    }
}

/// Output that a shell or ssh on this machine would execute must not come from the host.
Result<void> check_obeyed_output(const HostCall& call)
{
    if (call.refused) {
        return *call.refused;
    }
    if ((call.verb == "connect" || call.verb == "code") && call.unknown_options) {
        return fail(Error::Kind::usage,
                    fmt::format("{0}: options unknown to gpuq on this machine; see gpuq help {0}",
                                call.verb));
    }
    if (call.ssh_config && call.run.empty()) {
        return fail(Error::Kind::usage, "connect --config takes one run: gpuq ls lists them");
    }
    if (call.verb == "cluster" && has_argument(call.arguments, "env")) {
        return fail(Error::Kind::usage,
                    "cluster env prints variables for a shell on the host: run it in that shell");
    }
    return {};
}

/// The run for ssh on this machine, made of local text and of data that `fault_in` has accepted.
Result<SshHost> ssh_host_here(const HostCall& call, const frames::SshTarget& target,
                              Services& services)
{
    TRY_ASSIGN(const RunKey key, RunKey::parse(target.key));
    TRY_ASSIGN(std::string program, services.program());
    std::vector<std::string> command{std::move(program), "--host", call.place};
    if (!call.cluster.empty()) {
        command.insert(command.end(), {"--cluster", call.cluster});
    }
    command.insert(command.end(), {"connect", key.text()});
    const std::string id = target.job != 0 ? fmt::format("{}", target.job) : call.run;
    return SshHost{key,
                   id,
                   call.editing ? editor_names(id, call.run, key)
                                : std::vector<std::string>{id, call.run},
                   target.user,
                   std::move(command),
                   ""};
}

/// Uses the data about the run: for the lines that are printed, or for an editor.
Result<int> use_ssh_host(const HostCall& call, const SshHost& host)
{
    if (call.editing) {
        return open_editor(*call.editing, host);
    }
    TRY_ASSIGN(const std::string lines, ssh_config(host));
    TRY(print_text(lines));
    return 0;
}

/// Requests the description of the run for ssh on this machine, in place of the verb's output.
void request_target(const HostCall& call, remote::ClientOptions& options,
                    std::optional<frames::SshTarget>& target)
{
    options.start.arguments = with_options(call, {"--as-target"});
    if (call.editing) { // the rest is for this machine
        options.start.arguments = global_arguments(call);
        options.start.arguments.insert(options.start.arguments.end(),
                                       {"code", "--as-target", "--", call.run});
    }
    options.on_ssh_target = [&target](const auto& each) { target = each; };
}

Result<int> use_target(const HostCall& call, const std::optional<frames::SshTarget>& target,
                       const std::string& host_name, Services& services)
{
    if (!target) {
        return fail(
            Error::Kind::internal,
            fmt::format("protocol error from gpuq on {}: no description of the run", host_name));
    }
    TRY_ASSIGN(const SshHost host, ssh_host_here(call, *target, services));
    return use_ssh_host(call, host);
}

/// Appends the output to the file of --to.
Result<void> continue_copy(const LogCopy& copy, const HostCall& call,
                           remote::ClientOptions& options)
{
    options.out = copy.descriptor();
    options.shown_before = copy.size();
    options.once_more = copy_again(call);
    TRY_ASSIGN(options.start.arguments, arguments_after(copy, call));
    return {};
}

/// Completes the file of --to, which had `size_before` bytes before the session.
Result<void> end_copy(LogCopy& copy, const HostCall& call, const Result<int>& status,
                      std::uint64_t size_before, TerminalOrPipes& ui)
{
    if (!status || *status != 0) {
        copy.forget();
    }
    if (!status) {
        return {};
    }
    if (const int error = copy.sync(); error != 0) {
        return fail(Error::Kind::io,
                    fmt::format("{}: {}", sanitised(call.copy_to), std::strerror(error)));
    }
    TRY_ASSIGN(const LogMark held, copy.mark());
    // A verb that rejected the file, or knows no such run, has printed the reason.
    if (*status == 0 || held.bytes != size_before) {
        ui.print_message(
            fmt::format("{} holds {} bytes of the log", sanitised(call.copy_to), held.bytes));
    }
    return {};
}

/// Terminals, time limits and input of the session.
void set_streams(const HostCall& call, const Settings& settings,
                 const std::array<bool, 3>& terminals, bool is_interactive,
                 remote::ClientOptions& options)
{
    options.start.no_input = call.no_stdin || kind_of_stdin() == Input::none;
    options.start.terminals = terminals;
    options.start.raw = terminals[0] && terminals[1];
    options.pace = options.start.raw ? remote::k_pace_in_front : remote::Pace{};
    options.asks = is_interactive;
    if (!is_interactive) {
        options.pace.first = k_first_answer;
    }
    options.start.patience = settings.host_patience.value_or(k_patience);
    if (call.verb == "logs") {
        show_log(call, options.start);
    }
    show_text_only(call, options);
    // Other input is left to the next reader, such as `while read` in a shell: a detached run takes
    // none, and only a terminal can type into an attached one.
    const bool reads =
        reads_input(call.verb) && !call.detach && (call.verb != "attach" || terminals[0]);
    options.reads_input = !options.start.no_input && (options.start.raw || reads);
}

/// Opens the ports before anything starts on the host: a port in use is detected here.
Result<void> listen_for(const HostCall& call, remote::ClientOptions& options)
{
    if (!call.forwards.empty() && !follows_run(call.verb)) {
        return fail(Error::Kind::usage, "--forward applies to the run that is shown: use it with "
                                        "run, again, shell or attach");
    }
    if (!call.forwards.empty() && call.detach) {
        return fail(Error::Kind::usage,
                    "--forward can't be combined with --detach, which opens no session: use "
                    "gpuq attach --forward later");
    }
    if (call.forwards.size() > frames::k_most_forwards) {
        return fail(Error::Kind::usage,
                    fmt::format("--forward: at most {} ports at once", frames::k_most_forwards));
    }
    for (const std::string& text : call.forwards) {
        TRY_ASSIGN(remote::Forward forward, remote::forward_from(text));
        TRY_ASSIGN(auto listeners, remote::listen_here(forward.port));
        options.forwards.push_back(std::move(listeners));
        options.start.forwards.push_back(std::move(forward.to));
    }
    if (!call.cluster.empty()) { // `gpuq connect` on the host has no other source for it
        std::erase_if(options.start.variables,
                      [](const auto& each) { return each.starts_with("GPUQ_CLUSTER="); });
        options.start.variables.push_back("GPUQ_CLUSTER=" + call.cluster);
    }
    return {};
}

remote::TransportChoice transport_of(const Settings& settings)
{
    const std::string choice = settings.transport.value_or("auto");
    return choice == "libssh"    ? remote::TransportChoice::libssh
           : choice == "openssh" ? remote::TransportChoice::openssh
                                 : remote::TransportChoice::automatic;
}

} // namespace

Result<int> run_on_host(const HostCall& call, Services& services)
{
    TRY(check_obeyed_output(call));
    TRY_ASSIGN(const remote::Place place, remote::place_from(call.place));
    TRY_ASSIGN(const Settings settings, services.settings());
    TRY_ASSIGN(remote::SshCommand ssh, ssh_command(place.host, settings, services));
    std::optional<LogCopy> copy;
    if (!call.copy_to.empty()) {
        TRY_ASSIGN(copy, LogCopy::at(call.copy_to));
    }
    const std::uint64_t copied_before = copy ? copy->size() : 0;
    const std::array<bool, 3> terminals{::isatty(STDIN_FILENO) == 1,
                                        !copy && ::isatty(STDOUT_FILENO) == 1,
                                        ::isatty(STDERR_FILENO) == 1};
    ssh.interactive = terminals[0] && (terminals[1] || terminals[2]);

    remote::ClientOptions options;
    options.host = place.host;
    options.called = call.called;
    options.start.arguments = call.arguments;
    std::optional<frames::SshTarget> target;
    Descriptor nowhere;
    const bool needs_target = call.ssh_config || call.editing;
    if (needs_target) {
        request_target(call, options, target);
        nowhere.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        options.out = nowhere.get(); // the host's output is not for ssh
    }
    options.start.directory = place.directory;
    options.start.brief = is_brief(call.verb);
    options.start.variables = variables_for_there(services, call);
    set_streams(call, settings, terminals, ssh.interactive, options);
    TRY(listen_for(call, options));
    options.random = [&services] { return services.random(); };
    options.in_its_place = [&call, &copy,
                            start = options.start](const auto& lost) -> Result<frames::Start> {
        if (!copy) {
            return in_its_place(call, start, lost);
        }
        frames::Start again = start;
        TRY_ASSIGN(again.arguments, arguments_after(*copy, call));
        return again;
    };
    if (copy) {
        TRY(continue_copy(*copy, call, options));
    }
    TerminalOrPipes ui(call.quiet, options.start.raw, call.verb == "connect");
    if (takes_paths(call.verb)) {
        ui.print_message(fmt::format("on {}: current directory {}; paths refer to that host",
                                     place.host,
                                     place.directory.empty() ? "~" : sanitised(place.directory)));
    }
    TRY_ASSIGN(std::string gpuq, services.program());
    remote::HostTransport transport(transport_of(settings), ssh, std::move(gpuq));
    auto status = remote::Client(std::move(options), transport, ui).run();
    if (call.verb == "doctor") {
        ui.print_message(fmt::format("connected to {} by {}", place.host, transport.description()));
    }
    if (needs_target && status && *status == 0) {
        status = use_target(call, target, place.host, services);
    }
    if (copy) {
        TRY(end_copy(*copy, call, status, copied_before, ui));
    }
    return status;
}

} // namespace gpuq::cli
