// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/top_commands.h"

#include "cli/base/message.h"
#include "core/split_arguments.h"
#include "ports/host.h"

#include <sstream>
#include <string_view>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// The prefix of each message from a gpuq command.
constexpr std::string_view k_prefix = "gpuq: ";

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
        return captured(*arguments);
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
    if (!ended) {
        return {ended.error().text, true};
    }
    std::string text = ended->output;
    text.erase(text.find_last_not_of('\n') + 1);
    for (std::size_t at = 0; (at = text.find(k_prefix, at)) != std::string::npos;) {
        text.erase(at, k_prefix.size());
    }
    return {text.empty() && ended->status == 0 ? "done" : text, ended->status != 0};
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
