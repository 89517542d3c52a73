// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/commands/connect_target.h"
#include "cli/host/local_ports.h"
#include "cli/host/port_forwarder.h"
#include "cli/render/listening_document.h"
#include "remote/forward.h"
#include "wire/remote_frame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq::cli {
namespace {

/// How the same port of the node is forwarded from another one of this machine: `6007:6006`.
std::string with_other_port(const remote::Forward& forward)
{
    constexpr std::string_view k_node = "localhost:";
    const std::string_view to = forward.to;
    const int other = forward.port < 65535 ? forward.port + 1 : forward.port - 1;
    return fmt::format("{}:{}", other, to.starts_with(k_node) ? to.substr(k_node.size()) : to);
}

/// Opens all ports: one in use is detected before anything starts.
Result<ForwarderOptions> open_ports(const std::vector<std::string>& specifications,
                                    std::vector<ListeningPort>& ports)
{
    if (specifications.size() > wire::remote::k_most_forwards) {
        return fail(Error::Kind::usage, fmt::format("forward: at most {} ports at once",
                                                    wire::remote::k_most_forwards));
    }
    ForwarderOptions options;
    for (const std::string& text : specifications) {
        TRY_ASSIGN(remote::Forward forward, remote::forward_from(text));
        auto listeners = remote::listen_here(forward.port);
        if (!listeners) {
            Error error = std::move(listeners).error();
            if (error.kind == Error::Kind::usage) {
                error.text += ", as in " + with_other_port(forward);
            }
            return error;
        }
        options.listeners.push_back(*std::move(listeners));
        ports.push_back({forward.port, std::move(forward.to)});
    }
    return options;
}

std::string texts_of(const std::vector<ListeningPort>& ports)
{
    std::vector<std::string> texts;
    for (const ListeningPort& each : ports) {
        texts.push_back(fmt::format("localhost:{} to {}", each.port, each.to));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

Result<int> forward(Invocation& invocation)
{
    if (invocation.arguments.size() < 2) {
        return fail(Error::Kind::usage, "forward: missing run or port: gpuq forward RUN PORT");
    }
    Signals signals;
    const std::string run = invocation.arguments.front();
    std::vector<std::string> command;
    std::vector<ListeningPort> ports;
    TRY_ASSIGN(ForwarderOptions options,
               open_ports({invocation.arguments.begin() + 1, invocation.arguments.end()}, ports));
    TRY_ASSIGN(command, gpuq_there(invocation));
    command.insert(command.end(), {"connect", "--dial", "--greet", "--"});
    std::optional<RunKey> key; // of the run that the name denoted at the start
    options.command = [&](bool) {
        auto argv = command;
        argv.push_back(key ? key->text() : run);
        for (const ListeningPort& each : ports) {
            argv.push_back(each.to);
        }
        return argv;
    };
    options.greeting = [&](std::string_view line) -> Result<void> {
        // The line may come from another host.
        const auto named = run_in_line(line);
        if (!named || (key && *key != *named)) {
            return fail(Error::Kind::internal, "protocol error: no key of a run");
        }
        key = named;
        return {};
    };
    options.result = [](int status) {
        const bool has_ended = status == static_cast<int>(exit_status_of(Error::Kind::missing));
        return has_ended ? std::optional(0) : lasting_failure(status);
    };
    options.print_message = [](std::string_view text) { print_message(text); };
    const bool quiet = invocation.globals.quiet;
    options.connected = [&] {
        if (invocation.globals.json) {
            // A reader that is gone needs no address.
            (void)print_text(report::json_document(forward_document(ports, key->text())));
            std::fflush(stdout);
        }
        print_note(quiet, fmt::format("forwarding {} of {}; Ctrl-C ends it", texts_of(ports), run));
    };
    return forward_ports(std::move(options), signals);
}

} // namespace

const Verb k_forward_verb{"forward", "gpuq forward RUN [LOCAL:]PORT...",
                          "forward ports of this machine to the node of a run", forward};

} // namespace gpuq::cli
