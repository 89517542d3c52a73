// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/application.h"

#include "cli/base/globals.h"
#include "cli/base/message.h"
#include "cli/base/read_only.h"
#include "cli/commands/help_text.h"
#include "cli/commands/verbs.h"
#include "cli/host/host_session.h"
#include "cli/host/local_ports.h"
#include "cli/queries/tickets.h"
#include "log/log.h"
#include "remote/verb_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <poll.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using Arguments = std::vector<std::string>;

constexpr Option k_version{0, "version", "", "print the version and exit"};

int report_error(const Error& error)
{
    std::string_view rest = error.text;
    while (true) { // Slurm's messages may have several lines
        const std::size_t end = rest.find('\n');
        print_message(rest.substr(0, end));
        if (end == std::string_view::npos || end + 1 == rest.size()) {
            return static_cast<int>(exit_status_of(error.kind));
        }
        rest.remove_prefix(end + 1);
    }
}

/// Logs to stderr as $GPUQ_LOG and -v request; a value of GPUQ_LOG that can't be parsed stops no
/// command.
void start_log(Services& services, std::size_t verbose)
{
    constexpr std::array k_by_count = {log::Level::off, log::Level::info, log::Level::debug,
                                       log::Level::trace};
    const auto requested = services.variable("GPUQ_LOG");
    if (verbose == 0 && !requested) {
        return;
    }
    const auto default_levels =
        log::Levels::all(k_by_count.at(std::min(verbose, k_by_count.size() - 1)));
    const auto levels = log::parse_levels(requested.value_or(""), default_levels);
    if (!levels) {
        print_message(levels.error().text);
    }
    log::to_stderr(levels ? *levels : default_levels);
}

/// A closed pipe is not an error (`gpuq ls | head`); a full disk is.
Result<int> with_output_written(int status)
{
    const bool is_flushed = std::fflush(stdout) == 0;
    if (!is_flushed && errno != EPIPE) {
        return fail(Error::Kind::io, fmt::format("standard output: {}", std::strerror(errno)));
    }
    pollfd out{STDOUT_FILENO, 0, 0};
    const bool is_closed_pipe = ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
    if (is_flushed && std::ferror(stdout) != 0 && !is_closed_pipe) { // an earlier write has failed
        return fail(Error::Kind::io, "standard output: not everything could be written");
    }
    return status;
}

Result<int> print(const std::string& text)
{
    std::fputs(text.c_str(), stdout);
    return 0;
}

Result<int> run_verb(const Verb& verb, const Arguments& arguments, Globals globals,
                     Services& services)
{
    const std::vector<Option> table = all_options(verb);
    TRY_ASSIGN(Parsed parsed, parse_options(table, verb.order, arguments));
    if (parsed.options.has("help")) {
        return print(help_text(verb));
    }
    TRY(take_globals(parsed.options, globals));
    start_log(services, globals.verbose);
    if (!globals.cluster.empty()) {
        services.choose_cluster(globals.cluster);
    }
    // `keepalive --stay` refreshes them itself; starting another one here would never end.
    if (refreshes_tickets(verb.name) && !parsed.options.has("stay")) {
        refresh_tickets(services);
    }
    Invocation invocation{services, globals, std::move(parsed.operands), std::move(parsed.options),
                          parsed.before_dashes};
    return verb.run(invocation);
}

/// Nothing if the configuration is invalid: verbs that need it report that, and help does not need
/// it.
std::optional<std::string> host_of_settings(Services& services)
{
    const auto settings = services.settings();
    return settings ? settings->host : std::nullopt;
}

/// False in a shell started by sudo, where it is the shell.
bool is_executed_by_sudo(Services& services)
{
    const std::string command = services.variable("SUDO_COMMAND").value_or("");
    const std::string program = command.substr(0, command.find(' '));
    return program.substr(program.rfind('/') + 1) == "gpuq";
}

/// A rule in sudoers that lets users execute gpuq as an operator's account must not let them log in
/// elsewhere with that account's keys and tickets.
Result<void> check_sudo(Services& services)
{
    return !is_executed_by_sudo(services)
               ? Result<void>()
               : fail(Error::Kind::denied,
                      "--host: not if sudo executes gpuq: it would log in with "
                      "the keys of the other account");
}

/// By default sudo keeps the caller's TZ (env_check in sudoers(5)), by which the caller would
/// choose the hours of the policy's calendar, and an operator abroad would apply it for other
/// hours.
void ignore_time_zone_of_caller(Services& services)
{
    if (is_executed_by_sudo(services)) {
        services.forget_variable("TZ");
        ::tzset();
    }
}

Result<int> run(const Arguments& arguments, Services& services)
{
    const auto global = global_options();
    std::vector<Option> table(global.begin(), global.end());
    table.push_back(k_version);
    TRY_ASSIGN(const Parsed parsed, parse_options(table, Order::options_first, arguments));
    if (parsed.options.has("version")) {
        return print("gpuq " GPUQ_VERSION "\n");
    }
    if (parsed.options.has("help")) {
        return print(help_text());
    }
    if (parsed.operands.empty()) {
        return fail(Error::Kind::usage, "missing command; try 'gpuq run PROGRAM' or 'gpuq help'");
    }
    const std::string& name = parsed.operands.front();
    const Verb* verb = find_verb(every_verb(), name);
    Arguments rest(parsed.operands.begin() + 1, parsed.operands.end());
    if (verb != nullptr && is_read_only(services)) {
        TRY(check_read_only(*verb, rest));
    }
    if (const auto call = services.is_served()
                              ? std::nullopt
                              : host_call(arguments, host_of_settings(services), every_verb());
        call && !(listens_here(call->verb) && !call->carries)) {
        TRY(check_sudo(services));
        start_log(services, call->verbose);
        return run_on_host(*call, services);
    } else if (call) {
        TRY(check_sudo(services));
        rest.insert(rest.begin(), "--host=" + call->place);
    }
    Globals globals;
    TRY(take_globals(parsed.options, globals));
    return verb == nullptr ? no_such_verb(name) : run_verb(*verb, rest, globals, services);
}

} // namespace

int run_application(int argc, char** argv, Services& services)
{
    const std::string called = services.variable(remote::k_called).value_or("");
    services.forget_variable(remote::k_called); // programs that we start must not inherit it
    ignore_time_zone_of_caller(services);
    std::optional<Audience> audience;
    if (services.is_served()) {
        audience.emplace(called, every_verb(), [&services](std::size_t bytes) {
            services.send_to_serve(remote::line_of_own(bytes));
        });
    }
    Result<int> status = run(argc > 1 ? Arguments(argv + 1, argv + argc) : Arguments{}, services);
    if (status) {
        status = with_output_written(*status);
    } else {
        std::fflush(stdout);
    }
    return status ? *status : report_error(status.error());
}

} // namespace gpuq::cli
