// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/top_commands.h"

#include "cli/base/message.h"
#include "core/split_arguments.h"
#include "ports/host.h"
#include "report/json_text.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// The prefix of each message from a gpuq command.
constexpr std::string_view k_prefix = "gpuq: ";

/// Whether a command starts a run and does not follow it.
bool starts_run(const std::vector<std::string>& of_gpuq)
{
    return !of_gpuq.empty() && (of_gpuq.front() == "run" || of_gpuq.front() == "again") &&
           std::find(of_gpuq.begin(), of_gpuq.end(), "--detach") != of_gpuq.end();
}

/// The messages in the output of a command, without the prefix of each.
std::string messages_in(std::string text)
{
    text.erase(text.find_last_not_of('\n') + 1);
    for (std::size_t at = 0; (at = text.find(k_prefix, at)) != std::string::npos;) {
        text.erase(at, k_prefix.size());
    }
    return text;
}

/// Takes the document that --json adds out of the output of a command; empty if it has none.
std::string take_document(std::string& output)
{
    const std::size_t line = output.find("\n{\n");
    const std::size_t begin = output.starts_with("{\n") ? 0 : line + 1; // 0 if there is none
    const std::size_t end = output.find("\n}\n", begin);
    if (!std::string_view(output).substr(begin).starts_with("{\n") || end == std::string::npos) {
        return "";
    }
    std::string document = output.substr(begin, end + std::string_view("\n}\n").size() - begin);
    output.erase(begin, document.size());
    return document;
}

/// The output of a command that has ended, or that it has succeeded.
tui::Done done_with(const Host::Ended& ended, const std::string& output)
{
    std::string text = messages_in(output);
    return {text.empty() && ended.status == 0 ? "done" : std::move(text), ended.status != 0};
}

void wait_for_enter()
{
    print_message("Enter returns to gpuq top");
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') {
    }
}

} // namespace

tui::Done TopCommands::run(const tui::Command& command)
{
    const auto arguments = command_line(command.arguments);
    if (!arguments) {
        return {arguments.error().text, true};
    }
    if (!command.on_terminal) {
        return starts_run(command.arguments) ? started(*arguments) : captured(*arguments);
    }
    tui::Done done = on_terminal(*arguments, command.to_pager);
    if (command.pauses) {
        wait_for_enter();
    }
    return done;
}

tui::Done TopCommands::try_out(const tui::Try& attempt)
{
    const auto arguments = command_line(attempt.arguments);
    const auto ended = arguments ? m_host.run(*arguments) : Result<Host::Ended>(arguments.error());
    if (!ended) {
        return {ended.error().text, true};
    }
    tui::Done done{"", ended->status != 0};
    std::istringstream lines(ended->output);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(k_prefix)) {
            done.message += line.substr(k_prefix.size()) + "\n";
        }
    }
    return done;
}

Result<std::vector<std::string>> TopCommands::command_line(const std::vector<std::string>& of_gpuq)
{
    TRY_ASSIGN(const std::string program, m_services.program());
    std::vector<std::string> arguments{program};
    arguments.insert(arguments.end(), of_gpuq.begin(), of_gpuq.end());
    return arguments;
}

tui::Done TopCommands::captured(const std::vector<std::string>& arguments)
{
    const auto ended = m_host.run(arguments);
    return ended ? done_with(*ended, ended->output) : tui::Done{ended.error().text, true};
}

tui::Done TopCommands::started(std::vector<std::string> arguments)
{
    arguments.insert(arguments.begin() + 1, "--json");
    const auto ended = m_host.run(arguments);
    if (!ended) {
        return {ended.error().text, true};
    }
    std::string messages = ended->output;
    const std::string document = take_document(messages);
    tui::Done done = done_with(*ended, messages);
    done.started = report::text_member(document, "key").value_or("");
    return done;
}

tui::Done TopCommands::on_terminal(const std::vector<std::string>& arguments, bool to_pager)
{
    std::vector<std::string> pager;
    if (to_pager) {
        const auto chosen = split_arguments(m_services.variable("PAGER").value_or(""));
        pager = chosen && !chosen->empty() ? *chosen : std::vector<std::string>{"less", "-R"};
    }
    const auto status = m_host.run_here(arguments, pager);
    return status ? tui::Done{"", false} : tui::Done{status.error().text, true};
}

} // namespace gpuq::cli
