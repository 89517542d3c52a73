// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/host_call.h"

#include "cli/base/options.h"
#include "core/quote.h"

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 3> k_always_here = {"help", "completion", "serve"};
constexpr std::string_view k_about_a_machine = "cluster";

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Removes options (`--host`) and their values from the arguments between `begin` and `end`.
Words without(const Words& options, const Words& words, std::size_t begin, std::size_t end)
{
    Words kept(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(begin));
    for (std::size_t i = begin; i < words.size(); ++i) {
        const auto is_of = [&](const std::string& option) {
            return i < end && (words[i] == option || words[i].starts_with(option + "="));
        };
        const auto found = std::find_if(options.begin(), options.end(), is_of);
        if (found == options.end()) {
            kept.push_back(words[i]);
        } else if (words[i] == *found) {
            ++i;
        }
    }
    return kept;
}

const Words k_not_for_there = {"--host", "--forward"};

/// How many of a verb's arguments precede those of a program.
std::size_t own_words(const Words& words, const Parsed& parsed, Order order)
{
    const auto dashes =
        static_cast<std::size_t>(std::find(words.begin(), words.end(), "--") - words.begin());
    return order == Order::options_first ? std::min(dashes, words.size() - parsed.operands.size())
                                         : dashes;
}

} // namespace

std::optional<HostCall> host_call(const Words& words, const std::optional<std::string>& configured,
                                  Verbs verbs)
{
    const auto global = global_options();
    const auto before = parse_options(global, Order::options_first, words);
    if (!before || before->operands.empty() || before->options.has("help")) {
        return std::nullopt;
    }
    HostCall call;
    call.verb = before->operands.front();
    call.words = words;
    const std::size_t at = words.size() - before->operands.size();
    const Words rest(before->operands.begin() + 1, before->operands.end());
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
            const std::size_t own = own_words(rest, *after, verb->order);
            call.words = without(k_not_for_there, words, at + 1, at + 1 + own);
        }
        call.follow = after && call.verb == "logs" && after->options.has("follow");
        call.detach = after && after->options.has("detach");
        call.no_stdin = after && after->options.has("no-stdin");
        call.unknown_options = !after;
        if (after && call.verb == "connect") {
            call.ssh_config = after->options.has("config");
            call.run = after->operands.size() == 1 ? after->operands.front() : "";
        }
        if (after && call.verb == "logs" && after->options.has("to")) {
            call.copy_to = *after->options.value("to");
            call.words = without({"--to"}, call.words, at + 1, call.words.size());
        }
    }
    call.words = without(k_not_for_there, call.words, 0, at);
    const bool configured_counts = call.verb != k_about_a_machine;
    if (is_one_of(call.verb, k_always_here) || (!asked && !(configured && configured_counts))) {
        return std::nullopt;
    }
    call.place = asked ? *asked : *configured;
    call.called = asked ? "gpuq --host " + shell_quoted(call.place) : "gpuq";
    return call;
}

Words global_words(const HostCall& call)
{
    Words words;
    if (!call.cluster.empty()) {
        words.insert(words.end(), {"--cluster", call.cluster});
    }
    if (call.quiet) {
        words.emplace_back("-Q");
    }
    return words;
}

std::vector<std::string> with_options(const HostCall& call, const Words& options)
{
    const auto parsed = parse_options(global_options(), Order::options_first, call.words);
    const std::size_t behind_verb =
        parsed && !parsed->operands.empty() ? call.words.size() - parsed->operands.size() + 1 : 0;
    Words words = call.words;
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(behind_verb), options.begin(),
                 options.end());
    return words;
}

Words log_again(const HostCall& call, const Words& options, const std::string& key)
{
    Words words = global_words(call);
    words.emplace_back("logs");
    if (call.follow) {
        words.emplace_back("-f");
    }
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(key);
    return words;
}

bool only_looks(std::string_view verb)
{
    static constexpr std::array<std::string_view, 9> k_words = {
        "ls", "free", "why", "show", "profile", "usage", "logs", "doctor", "top"};
    return is_one_of(verb, k_words);
}

bool is_brief(std::string_view verb)
{
    return only_looks(verb) && verb != "logs" && verb != "top";
}

bool prints_lines(std::string_view verb)
{
    static constexpr std::array<std::string_view, 8> k_words = {
        "stop", "extend", "save", "exempt", "keepalive", "report", "policy", "cluster"};
    return is_brief(verb) || is_one_of(verb, k_words);
}

bool reads_input(std::string_view verb)
{
    static constexpr std::array<std::string_view, 8> k_words = {
        "run", "shell", "attach", "resume", "rehearse", "connect", "clean", "policy"};
    return is_one_of(verb, k_words);
}

bool takes_paths(std::string_view verb)
{
    static constexpr std::array<std::string_view, 3> k_words = {"run", "rehearse", "policy"};
    return is_one_of(verb, k_words);
}

bool follows_run(std::string_view verb)
{
    static constexpr std::array<std::string_view, 4> k_words = {"run", "shell", "attach", "resume"};
    return is_one_of(verb, k_words);
}

} // namespace gpuq::cli
