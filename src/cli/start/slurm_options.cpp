// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/slurm_options.h"

#include "core/split_arguments.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gpuq::cli {
namespace {

/// An option of sbatch that a run can't have, and the alternative.
struct Refused {
    std::string_view name;
    char letter; ///< 0: none
    std::string_view instead;
};

constexpr Refused k_refused[] = {
    // gpuq must know these: otherwise it and Slurm would disagree about the run's end, GPUs or
    // queue.
    {"time", 't', "use gpuq's own option -t"},
    {"partition", 'p', "use gpuq's own option -p"},
    {"nodes", 'N', "use gpuq's own option -N"},
    {"job-name", 'J', "use gpuq's own option -J"},
    {"account", 'A', "use gpuq's own option -A"},
    {"qos", 'q', "use gpuq's own option -q"},
    {"cpus-per-task", 'c', "use gpuq's own option -c"},
    {"mem", 0, "use gpuq's own option --mem"},
    {"gpus", 'G', "use gpuq's own option -g"},
    {"gpus-per-node", 0, "use gpuq's own option -g"},
    {"gpus-per-socket", 0, "use gpuq's own option -g"},
    {"gpus-per-task", 0, "use gpuq's own option --gpus-per-task"},
    {"tres-per-job", 0, "use gpuq's own option -g"},
    {"tres-per-node", 0, "use gpuq's own option -g"},
    {"tres-per-socket", 0, "use gpuq's own option -g"},
    {"tres-per-task", 0, "use gpuq's own option --gpus-per-task"},
    {"ntasks", 'n', "use gpuq's own option --tasks-per-node"},
    {"ntasks-per-node", 0, "use gpuq's own option --tasks-per-node"},
    {"ntasks-per-gpu", 0, "use gpuq's own option --tasks-per-node"},
    {"tasks-per-node", 0, "use gpuq's own option --tasks-per-node"},
    {"container", 0, "use gpuq's own option --container"},
    {"container-id", 0, "use gpuq's own option --container"},
    {"dependency", 'd', "use gpuq's own option --after"},
    {"signal", 0, "use gpuq's own option --notice"},
    {"export", 0, "gpuq passes the environment on; --env changes it"},
    {"export-file", 0, "gpuq passes the environment on; --env changes it"},
    {"get-user-env", 0, "gpuq passes the environment on; --env changes it"},
    {"propagate", 0, "gpuq chooses the resource limits: man gpuq-run, ENVIRONMENT OF THE PROGRAM"},
    // These would take control of the run from gpuq.
    {"clusters", 'M', "a run uses the cluster of gpuq; --cluster chooses another"},
    {"cluster-constraint", 0, "a run uses the cluster of gpuq; --cluster chooses another"},
    {"array", 'a', "a run is one job; start gpuq run several times"},
    {"requeue", 0, "gpuq continues a run automatically: man gpuq-chain"},
    {"chdir", 'D', "use gpuq's own option -D"},
    {"comment", 0, "gpuq identifies its jobs by the comment"},
    {"error", 'e', "gpuq captures the output: gpuq logs"},
    {"input", 'i', "redirect the standard input of gpuq run"},
    {"output", 'o', "gpuq captures the output: gpuq logs"},
    {"open-mode", 0, "gpuq captures the output: gpuq logs"},
    {"kill-on-invalid-dep", 0, "--after does that"},
    {"wrap", 0, "write the command after gpuq run"},
    {"wait", 'W', "gpuq run waits unless --detach is given"},
    {"parsable", 0, "gpuq parses the output of sbatch"},
    {"test-only", 0, "gpuq run --dry-run shows the request"},
    {"uid", 0, "a run belongs to its user"},
    {"gid", 0, "a run belongs to its user"},
    {"ignore-pbs", 0, "gpuq generates the script"},
    {"help", 'h', "see man sbatch"},
    {"usage", 0, "see man sbatch"},
    {"version", 'V', "see man sbatch"},
};

/// Letters of sbatch without a value, after which another may follow; `k` and `s` take a value only
/// if it is joined by `=`.
constexpr std::string_view k_switches = "HIOQhksuvVW";

bool has_control(std::string_view text)
{
    return std::any_of(text.begin(), text.end(),
                       [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// sbatch accepts an abbreviated name, even one that is another option's full name.
const Refused* refused_by_name(std::string_view name)
{
    const auto found = std::find_if(std::begin(k_refused), std::end(k_refused), [&](auto& row) {
        return !name.empty() && row.name.starts_with(name);
    });
    return found == std::end(k_refused) ? nullptr : found;
}

const Refused* refused_by_letter(std::string_view letters)
{
    for (const char letter : letters) {
        const auto found = std::find_if(std::begin(k_refused), std::end(k_refused),
                                        [&](auto& row) { return row.letter == letter; });
        if (found != std::end(k_refused)) {
            return found;
        }
        if (k_switches.find(letter) == std::string_view::npos) {
            return nullptr; // the rest is its value
        }
    }
    return nullptr;
}

/// --gres=gpu:2, --gres=none and abbreviations of that name; resources other than GPUs and their
/// shares are left to Slurm.
bool asks_for_gpus(std::string_view name, std::string_view value)
{
    constexpr std::string_view k_others[] = {"shard", "mps", "none", "help", "list"};
    const auto items = split(value, ",");
    return name.size() > 1 && std::string_view("gres").starts_with(name) &&
           std::any_of(items.begin(), items.end(), [&](std::string_view item) {
               item.remove_prefix(item.starts_with("gres:") || item.starts_with("gres/") ? 5 : 0);
               const std::string_view resource = item.substr(0, item.find_first_of(":="));
               return item.find("gpu") != std::string_view::npos ||
                      std::find(std::begin(k_others), std::end(k_others), resource) !=
                          std::end(k_others);
           });
}

Result<void> check_option(std::string_view word, std::string_view next)
{
    constexpr Refused k_gres = {"gres", 0, "use gpuq's own option -g"};
    const Refused* refused = nullptr;
    if (word == "--" || word == ":" || word == "-") {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not an option of sbatch for one job", word));
    }
    if (word.starts_with("--")) {
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(2, equals - 2);
        const bool has_value = equals != std::string_view::npos;
        refused = asks_for_gpus(name, has_value ? word.substr(equals + 1) : next)
                      ? &k_gres
                      : refused_by_name(name);
    } else if (word.starts_with('-')) {
        refused = refused_by_letter(word.substr(1));
    }
    return refused == nullptr
               ? Result<void>()
               : fail(Error::Kind::usage,
                      fmt::format("{} is not possible in a run: {}", word, refused->instead));
}

} // namespace

Result<std::string> parse_slurm_options(std::string_view text)
{
    if (has_control(text)) {
        return fail(Error::Kind::usage, "line breaks and control characters are not allowed");
    }
    TRY_ASSIGN(const auto arguments, split_arguments(text));
    if (arguments.empty() || !arguments[0].starts_with('-')) {
        return fail(Error::Kind::usage, fmt::format("'{}' contains no options of sbatch", text));
    }
    for (std::size_t at = 0; at < arguments.size(); ++at) {
        TRY(check_option(arguments[at], at + 1 < arguments.size() ? arguments[at + 1] : ""));
    }
    return std::string(text);
}

} // namespace gpuq::cli
