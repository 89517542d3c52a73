// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/verbs.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/host/local_ports.h"
#include "cli/host/port_forwarder.h"
#include "cli/render/listening_document.h"
#include "cli/start/tensorboard_carry.h"
#include "core/exit_status.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// As `gpuq notebook`: this process listens on the user's machine; the one that it starts with
// --carry, on the login host if one is given, starts TensorBoard.

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "port", "PORT", "port of this machine; default: the first free one from 8888 on"},
    Option{0, "browser", "", "open the page in a browser"},
    Option{0, "carry", "", "for gpuq tensorboard: start it, on this host", Option::State::hidden},
    Option{0, "join", "GATE", "for gpuq tensorboard: connect to it", Option::State::hidden}};

/// The line may come from another host.
Result<void> take_greeting(std::string_view line)
{
    return line == k_tensorboard_greeting
               ? Result<void>()
               : fail(Error::Kind::internal, "protocol error: no TensorBoard");
}

Result<int> show(Invocation& invocation)
{
    Signals signals;
    TRY_ASSIGN(const auto port, port_in(invocation.options));
    TRY_ASSIGN(LocalPort local, listen_for_page(port));
    TRY_ASSIGN(std::vector<std::string> command, gpuq_there(invocation));
    command.insert(command.end(), {"tensorboard", "--carry", "--"});
    command.insert(command.end(), invocation.arguments.begin(), invocation.arguments.end());
    std::optional<BrowserPage> browser;
    ForwarderOptions options;
    options.listeners.push_back(std::move(local.listeners));
    options.command = [&](bool) { return command; };
    options.greeting = take_greeting;
    options.greets_when_connected = true;
    // A connection that is lost is made again, and so is a command that was killed. A TensorBoard
    // that has failed is not.
    options.result = [](int status) {
        constexpr int k_killed = 128 + SIGKILL;
        return status == static_cast<int>(ExitStatus::unreachable) || status == k_killed
                   ? std::nullopt
                   : std::optional(status);
    };
    options.print_message = [](std::string_view text) { print_message(text); };
    options.connected = [&] {
        const std::string url = fmt::format("http://localhost:{}/", local.port);
        (void)print_text(invocation.globals.json
                             ? report::json_document(tensorboard_document({url, local.port},
                                                                          invocation.arguments))
                             : url + "\n"); // a reader that is gone needs no address
        std::fflush(stdout);
        print_note(invocation.globals.quiet, "TensorBoard listens for you alone; Ctrl-C ends it");
        if (invocation.options.has("browser")) {
            auto page = BrowserPage::open(invocation.services.variable("BROWSER"), url);
            if (page) {
                browser.emplace(*std::move(page));
            } else {
                print_message(
                    fmt::format("--browser: {}; open the address above", page.error().text));
            }
        }
    };
    return forward_ports(std::move(options), signals);
}

Result<int> tensorboard(Invocation& invocation)
{
    if (const auto gate = invocation.options.value("join")) {
        return join_tensorboard(*gate);
    }
    if (invocation.arguments.empty()) {
        return fail(Error::Kind::usage, "tensorboard: missing run: gpuq tensorboard RUN...");
    }
    return invocation.options.has("carry") ? carry_tensorboard_of(invocation) : show(invocation);
}

} // namespace

const Verb k_tensorboard_verb{"tensorboard", "gpuq tensorboard RUN...",
                              "TensorBoard of runs, in your own browser", tensorboard, k_options};

} // namespace gpuq::cli
