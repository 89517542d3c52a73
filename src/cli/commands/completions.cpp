// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/completions.h"

#include "cli/commands/completion_rows.h"
#include "cli/commands/verbs.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using Strings = std::vector<std::string>;

const Verb* verb_named(const std::string& name)
{
    for (const Verb* const verb : verbs()) {
        if (verb->name == name) {
            return verb;
        }
    }
    return nullptr;
}

/// The option with a value that a word is; null if it is none.
const Option* option_before(const std::vector<Option>& options, const std::string& word)
{
    const auto found = std::find_if(options.begin(), options.end(), [&](const Option& option) {
        return !option.value.empty() &&
               (word == fmt::format("--{}", option.name) ||
                (option.letter != 0 && word == fmt::format("-{}", option.letter)));
    });
    return found == options.end() ? nullptr : &*found;
}

Strings directories(const std::string& word, const CompletionSources& sources)
{
    Strings found = sources.files(word);
    std::erase_if(found, [](const std::string& path) { return !path.ends_with('/'); });
    return found;
}

Strings values(const Option& option, const std::string& word, const CompletionSources& sources)
{
    return option.value == "DIR"                                  ? directories(word, sources)
           : takes_file(option)                                   ? sources.files(word)
           : option.name == "queue" || option.name == "partition" ? sources.queues()
           : option.name == "conda"                               ? sources.conda()
           : option.name == "module"                              ? sources.modules()
                                                                  : values_of(option);
}

Strings operands(const Verb& verb, std::size_t count, const std::string& word,
                 const CompletionSources& sources)
{
    Strings found = count == 0 ? choices_of(verb) : Strings{};
    if (takes_runs(verb)) {
        const Strings runs = sources.runs();
        found.insert(found.end(), runs.begin(), runs.end());
    }
    if (takes_program(verb) || (takes_runs(verb) && count > 0)) {
        const Strings files = sources.files(word);
        found.insert(found.end(), files.begin(), files.end());
    }
    return found;
}

/// The value of --chdir, with a slash at its end; empty without one.
std::string directory_in(const Strings& arguments)
{
    const auto option = std::find_if(arguments.begin(), arguments.end(), [](const auto& word) {
        return word == "--chdir" || word == "-D" || word == "--";
    });
    const bool is_given = arguments.end() - option > 2 && *option != "--";
    return is_given ? *(option + 1) + (option[1].ends_with('/') ? "" : "/") : "";
}

/// The same for a program that runs in another directory: its files are named from there.
CompletionSources seen_from(const std::string& directory, CompletionSources sources)
{
    if (!directory.empty()) {
        sources.files = [directory, files = sources.files](const std::string& beginning) {
            if (beginning.starts_with('/')) {
                return files(beginning);
            }
            Strings found;
            for (const std::string& path : files(directory + beginning)) {
                if (path.starts_with(directory)) {
                    found.push_back(path.substr(directory.size()));
                }
            }
            return found;
        };
    }
    return sources;
}

Strings candidates(const Strings& arguments, const CompletionSources& sources)
{
    const std::string& word = arguments.back();
    if (arguments.size() == 1) {
        return verb_names();
    }
    const Verb* const verb = verb_named(arguments.front());
    if (verb == nullptr) {
        return {};
    }
    const std::vector<Option> options = options_of(*verb);
    const bool in_program =
        std::find(arguments.begin(), arguments.end() - 1, "--") != arguments.end() - 1;
    if (const Option* const option = option_before(options, arguments[arguments.size() - 2]);
        option != nullptr && !in_program) {
        return values(*option, word, sources);
    }
    if (word.starts_with('-') && !in_program) {
        Strings found;
        for (const Option& option : options) {
            found.push_back(fmt::format("--{}", option.name));
        }
        return found;
    }
    return operands(*verb, arguments.size() - 2, word, sources);
}

} // namespace

Strings completions(const Strings& arguments, const CompletionSources& sources)
{
    if (arguments.empty()) {
        return {};
    }
    Strings found = candidates(arguments, seen_from(directory_in(arguments), sources));
    std::erase_if(found,
                  [&](const std::string& word) { return !word.starts_with(arguments.back()); });
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

} // namespace gpuq::cli
