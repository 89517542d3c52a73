// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/host_call.h"

#include "cli/base/options.h"
#include "core/quote.h"

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

using Arguments = std::vector<std::string>;

constexpr std::array<std::string_view, 3> k_always_here = {"help", "completion", "serve"};
constexpr std::string_view k_about_a_machine = "cluster";

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& arguments)
{
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
}

/// Removes options (`--host`) and their values from the arguments between `begin` and `end`.
Arguments without(const Arguments& options, const Arguments& arguments, std::size_t begin,
                  std::size_t end)
{
    Arguments kept(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(begin));
    for (std::size_t i = begin; i < arguments.size(); ++i) {
        const auto is_of = [&](const std::string& option) {
            return i < end && (arguments[i] == option || arguments[i].starts_with(option + "="));
        };
        const auto found = std::find_if(options.begin(), options.end(), is_of);
        if (found == options.end()) {
            kept.push_back(arguments[i]);
        } else if (arguments[i] == *found) {
            ++i;
        }
    }
    return kept;
}

const Arguments k_not_for_there = {"--host", "--forward"};

/// How many of a verb's arguments precede those of a program.
std::size_t own_arguments(const Arguments& arguments, const Parsed& parsed, Order order)
{
    const auto dashes = static_cast<std::size_t>(
        std::find(arguments.begin(), arguments.end(), "--") - arguments.begin());
    return order == Order::options_first
               ? std::min(dashes, arguments.size() - parsed.operands.size())
               : dashes;
}

} // namespace

std::optional<HostCall> host_call(const Arguments& arguments,
                                  const std::optional<std::string>& configured, Verbs verbs)
{
    const auto global = global_options();
    const auto before = parse_options(global, Order::options_first, arguments);
    if (!before || before->operands.empty() || before->options.has("help")) {
        return std::nullopt;
    }
    HostCall call;
    call.verb = before->operands.front();
    call.arguments = arguments;
    const std::size_t at = arguments.size() - before->operands.size();
    const Arguments rest(before->operands.begin() + 1, before->operands.end());
    std::optional<std::string> asked = before->options.value("host");
    call.quiet = before->options.has("quiet");
    call.verbose = before->options.values("verbose").size();
    call.cluster = before->options.value("cluster").value_or("");
    call.forwards = before->options.values("forward");
    if (const Verb* const verb = find_verb(verbs, call.verb)) {
        const auto after = parse_options(all_options(*verb), verb->order, rest);
        if (after && after->options.has("help")) {
            return std::nullopt;
        }
        if (after) {
            call.quiet = call.quiet || after->options.has("quiet");
            call.cluster = after->options.value("cluster").value_or(call.cluster);
        }
        if (after) {
            asked = after->options.has("host") ? after->options.value("host") : asked;
            const auto forwards = after->options.values("forward");
            call.forwards.insert(call.forwards.end(), forwards.begin(), forwards.end());
            const std::size_t own = own_arguments(rest, *after, verb->order);
            call.arguments = without(k_not_for_there, arguments, at + 1, at + 1 + own);
        }
        call.follow = after && call.verb == "logs" && after->options.has("follow");
        call.timestamps = after && call.verb == "logs" && after->options.has("timestamps");
        call.detach = after && after->options.has("detach");
        const bool prints_top = after && call.verb == "top" &&
                                (after->options.has("once") || after->options.has("json") ||
                                 before->options.has("json"));
        call.prints_only = prints_top || (after && after->options.has("dry-run"));
        call.no_stdin = after && after->options.has("no-stdin");
        call.carries = after && after->options.has("carry");
        call.unknown_options = !after;
        if (after && call.verb == "connect") {
            call.ssh_config = after->options.has("config");
            call.run = after->operands.size() == 1 ? after->operands.front() : "";
        }
        if (after && call.verb == "code") {
            auto editing = editing_from(after->options, after->operands);
            if (editing) {
                editing->json = before->options.has("json") || after->options.has("json");
                call.run = editing->run;
                call.editing = *std::move(editing);
            } else {
                call.refused = editing.error();
            }
        }
        if (after && call.verb == "logs" && after->options.has("to")) {
            call.copy_to = *after->options.value("to");
            call.arguments = without({"--to"}, call.arguments, at + 1, call.arguments.size());
        }
    }
    call.arguments = without(k_not_for_there, call.arguments, 0, at);
    const bool configured_counts = call.verb != k_about_a_machine;
    if (is_one_of(call.verb, k_always_here) || (!asked && !(configured && configured_counts))) {
        return std::nullopt;
    }
    call.place = asked ? *asked : *configured;
    call.called = asked ? "gpuq --host " + shell_quoted(call.place) : "gpuq";
    return call;
}

Arguments global_arguments(const HostCall& call)
{
    Arguments arguments;
    if (!call.cluster.empty()) {
        arguments.insert(arguments.end(), {"--cluster", call.cluster});
    }
    if (call.quiet) {
        arguments.emplace_back("-Q");
    }
    return arguments;
}

std::vector<std::string> with_options(const HostCall& call, const Arguments& options)
{
    const auto parsed = parse_options(global_options(), Order::options_first, call.arguments);
    const std::size_t behind_verb = parsed && !parsed->operands.empty()
                                        ? call.arguments.size() - parsed->operands.size() + 1
                                        : 0;
    Arguments arguments = call.arguments;
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(behind_verb), options.begin(),
                     options.end());
    return arguments;
}

Arguments log_again(const HostCall& call, const Arguments& options, const std::string& key)
{
    Arguments arguments = global_arguments(call);
    arguments.emplace_back("logs");
    if (call.follow) {
        arguments.emplace_back("-f");
    }
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back(key);
    return arguments;
}

bool only_reads(std::string_view verb)
{
    static constexpr std::array<std::string_view, 11> k_keywords = {
        "ls", "free", "why", "show", "diff", "profile", "usage", "logs", "doctor", "top", "wait"};
    return is_one_of(verb, k_keywords);
}

bool is_brief(std::string_view verb)
{
    return only_reads(verb) && verb != "logs" && verb != "top" && verb != "wait";
}

bool prints_text(const HostCall& call)
{
    const bool shows_screen = call.verb == "top" && !call.prints_only;
    const bool shows_program = follows_run(call.verb) && !call.detach && !call.prints_only;
    return !shows_screen && !shows_program && call.verb != "logs" && call.verb != "connect";
}

bool reads_input(std::string_view verb)
{
    static constexpr std::array<std::string_view, 10> k_keywords = {
        "run",     "again", "shell",  "attach",   "rehearse",
        "connect", "clean", "policy", "notebook", "tensorboard"};
    return is_one_of(verb, k_keywords);
}

bool takes_paths(std::string_view verb)
{
    static constexpr std::array<std::string_view, 5> k_keywords = {"run", "sweep", "rehearse",
                                                                   "policy", "notebook"};
    return is_one_of(verb, k_keywords);
}

bool follows_run(std::string_view verb)
{
    static constexpr std::array<std::string_view, 4> k_keywords = {"run", "again", "shell",
                                                                   "attach"};
    return is_one_of(verb, k_keywords);
}

} // namespace gpuq::cli
