// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/run_options.h"

#include "cli/start/slurm_options.h"
#include "core/number.h"
#include "core/size.h"
#include "core/split_arguments.h"
#include "core/timestamp.h"
#include "core/walltime.h"
#include "runs/insight/progress.h"
#include "runs/records/record.h"
#include "telemetry/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

namespace gpuq::cli {
namespace {

using State = Option::State;

constexpr std::array k_table = {
    Option{'t', "time", "TIME", "how long: 90 (minutes), 2h, 1h30m, 1:30:00, 1-12"},
    Option{'g', "gpus", "GPUS",
           "GPUs per node: 1, k80:2, 16G+ (that memory), shard:1 (a share), 0 for none"},
    Option{'c', "cpus", "N", "CPU cores per node; default: the queue's share per GPU"},
    Option{0, "mem", "SIZE", "memory per node: 16G, 500M; default: the queue's share per GPU"},
    Option{'N', "nodes", "N", "nodes; the program runs once on each"},
    Option{0, "tasks-per-node", "N", "ranks: the program runs N times on each node"},
    Option{0, "gpus-per-task", "N", "each rank sees N GPUs of its own; default: all of its node"},
    Option{'J', "name", "NAME", "name of the run; default: the program's"},
    Option{'A', "account", "ACCOUNT", "Slurm account to charge"},
    Option{'p', "queue", "QUEUE", "queue (Slurm partition); default: follows from -t"},
    Option{'q', "qos", "QOS", "Slurm quality of service"},
    Option{0, "after", "RUN", "start after this run has succeeded"},
    Option{'D', "chdir", "DIR", "directory of the program; default: the current one"},
    Option{'n', "no-stdin", "", "do not read standard input; that of the program is empty"},
    Option{0, "detach", "", "do not wait: print how to attach, and exit"},
    Option{0, "max-wait", "TIME", "give up (122) if it has not started by then"},
    Option{0, "dry-run", "", "print the plan and an sbatch script, submit nothing"},
    Option{0, "env", "NAME[=VALUE]", "set a variable for the program; may be repeated"},
    Option{0, "progress", "PATTERN", "pattern of its progress lines: 'it (?P<step>[0-9]+)'"},
    Option{0, "source", "FILE", "source a script of bash first; may be repeated"},
    Option{0, "module", "MODULE", "load an environment module first; may be repeated"},
    Option{0, "conda", "ENV", "activate a conda environment (a name or a path) first"},
    Option{0, "venv", "DIR", "activate a Python virtual environment first"},
    Option{0, "container", "IMAGE", "run inside a container of this image"},
    Option{0, "snapshot", "", "the program gets its files as they are now, when it starts later"},
    Option{0, "no-snapshot", "", "it gets the files that exist when it starts"},
    Option{0, "slurm", "OPTIONS", "other options of sbatch, as one quoted argument"},
    Option{0, "pty", "", "run on its own terminal, which survives this one; Enter ~ d detaches"},
    Option{0, "credentials", "WHAT",
           "hold, run or fail if a link would outlive its Kerberos ticket"},
    Option{0, "keytab", "FILE", "your Kerberos keytab, for new tickets when renewals end"},
    Option{0, "link", "TIME", "length of a link; default: the queue's limit (man gpuq-chain)"},
    Option{0, "checkpoint", "PATTERN", "checkpoint files, such as 'out/*.pt'; allows chaining"},
    Option{0, "resume-args", "WORDS", "added to the program to resume; {} is the checkpoint"},
    Option{0, "valid", "COMMAND", "your own check of a checkpoint; {} is its path"},
    Option{0, "notice", "SIGNAL", "auto, USR1, USR2, TERM or none: signal before a link ends"},
    Option{0, "restart-from-scratch", "", "allow a restart without a checkpoint"},
    Option{0, "max-links", "N", "maximum number of links"},
    Option{0, "gpu-hours", "HOURS", "maximum GPU-hours of all links"},
    Option{0, "until", "TIME", "latest end: 2026-12-24, 2026-12-24T18:00"},
    Option{0, "array", "SPEC", "", State::reserved},
};

constexpr std::size_t k_longest_name = 200;
constexpr std::uint64_t k_most_nodes = 100000;
constexpr std::uint64_t k_most_tasks = 4096;
constexpr std::uint64_t k_most_cpus = 65535;
constexpr std::uint64_t k_most_links = 100000;

Error wrong(std::string_view option, std::string_view text)
{
    return fail(Error::Kind::usage, fmt::format("{}: {}", option, text));
}

/// Parses the value of an option with `parse`; the error names the option.
template <typename T>
Result<std::optional<T>> through(const Options& options, std::string_view name,
                                 std::string_view shown, Result<T> (*parse)(std::string_view))
{
    const auto text = options.value(name);
    if (!text) {
        return std::optional<T>{};
    }
    Result<T> value = parse(*text);
    if (!value) {
        return wrong(shown, value.error().text);
    }
    return std::optional<T>{*std::move(value)};
}

template <std::uint64_t k_most>
Result<int> parse_count(std::string_view text)
{
    const auto number = whole_number(text);
    if (!number || *number == 0 || *number > k_most) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not a number from 1 to {}", text, k_most));
    }
    return static_cast<int>(*number);
}

bool has_control(std::string_view text)
{
    return std::any_of(text.begin(), text.end(),
                       [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Result<WhenShort> parse_when_short(std::string_view text)
{
    const auto what = when_short_from_word(text);
    if (!what) {
        return fail(Error::Kind::usage, fmt::format("'{}' is not hold, run or fail", text));
    }
    return *what;
}

/// A name for Slurm or a module system: not empty, without control characters or a leading dash.
Result<std::string> parse_argument(std::string_view text)
{
    if (text.empty() || has_control(text) || text[0] == '-' || text.size() > k_longest_name) {
        return fail(Error::Kind::usage, fmt::format("'{}' is not a name", text));
    }
    return std::string(text);
}

Result<std::string> parse_name(std::string_view text)
{
    const auto reason = [&]() -> std::string {
        if (text.empty()) {
            return "a name can't be empty";
        }
        if (text.find_first_not_of("0123456789") == std::string_view::npos) {
            return fmt::format("'{}' would be taken for a job id; add a letter", text);
        }
        if (has_control(text)) {
            return fmt::format("'{}' has control characters in it", text);
        }
        const auto slash = text.rfind('/');
        if (slash != std::string_view::npos && whole_number(text.substr(slash + 1))) {
            return fmt::format("'{}' would be taken for a try of a sweep", text);
        }
        if (text.size() > k_longest_name) {
            return fmt::format("it is longer than {} bytes", k_longest_name);
        }
        return text == "last" ? "'last' means the newest run; choose another name" : "";
    }();
    if (!reason.empty()) {
        return fail(Error::Kind::usage, reason);
    }
    return std::string(text);
}

Result<std::string> parse_container(std::string_view text)
{
    // Apptainer takes docker://..., paths and names; it would parse a leading dash as its own
    // option.
    if (text.empty() || text[0] == '-') {
        return fail(Error::Kind::usage, fmt::format("'{}' is not an image", text));
    }
    return std::string(text);
}

/// Variables that the supervisor sets (man gpuq-run, ENVIRONMENT OF THE PROGRAM).
constexpr std::string_view k_gpuq_variables[] = {
    "GPUQ_RUN_ID",      "GPUQ_LINK",  "GPUQ_DEADLINE",  "GPUQ_DEADLINE_FILE", "GPUQ_CHECKPOINT_DIR",
    "GPUQ_RESUME_FROM", "GPUQ_CAUSE", "GPUQ_STOP_FILE", "GPUQ_SAVE_FILE"};

bool is_variable_name(std::string_view name)
{
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    };
    return !name.empty() && std::all_of(name.begin(), name.end(), fits) &&
           !(name[0] >= '0' && name[0] <= '9');
}

Result<void> take_env(const Options& options, RunParameters& parameters)
{
    for (const std::string& text : options.values("env")) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (!is_variable_name(name)) {
            return wrong("--env", fmt::format("'{}' is not NAME=VALUE or NAME", text));
        }
        if (std::find(std::begin(k_gpuq_variables), std::end(k_gpuq_variables), name) !=
            std::end(k_gpuq_variables)) {
            return wrong("--env", fmt::format("{} is set by gpuq", name));
        }
        const bool has_value = equals != std::string::npos;
        parameters.env.emplace_back(name, has_value ? std::optional(text.substr(equals + 1))
                                                    : std::nullopt);
    }
    return {};
}

/// A variable, so that the environment of a site or a project can set it for all runs.
Result<void> take_progress(const Options& options, RunParameters& parameters)
{
    if (const auto text = options.value("progress")) {
        const auto pattern = telemetry::Pattern::compile(*text);
        if (!pattern) {
            return wrong("--progress", pattern.error().text);
        }
        parameters.env.emplace_back(k_progress_variable, *text);
    }
    return {};
}

Result<void> take_modules(const Options& options, RunParameters& parameters)
{
    for (const std::string& text : options.values("module")) {
        const auto module = parse_argument(text);
        if (!module) {
            return wrong("--module", module.error().text);
        }
        parameters.modules.push_back(*module);
    }
    return {};
}

/// The name of a file or directory: any bytes except NUL.
Result<std::string> parse_path(std::string_view text)
{
    if (text.empty() || text.find('\0') != std::string_view::npos) {
        return fail(Error::Kind::usage, "the name of a file is missing");
    }
    return std::string(text);
}

/// A directory that PATH can contain: it has no colon.
Result<std::string> parse_venv(std::string_view text)
{
    if (text.find(':') != std::string_view::npos) {
        return fail(Error::Kind::usage, fmt::format("'{}' has a colon in it", text));
    }
    TRY_ASSIGN(std::string path, parse_path(text));
    while (path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    return path;
}

Result<void> take_files(const Options& options, RunParameters& parameters)
{
    for (const std::string& text : options.values("source")) {
        const auto path = parse_path(text);
        if (!path) {
            return wrong("--source", path.error().text);
        }
        parameters.sources.push_back(*path);
    }
    TRY_ASSIGN(parameters.venv, through(options, "venv", "--venv", parse_venv));
    if (parameters.venv && parameters.conda) {
        return wrong("--venv", "--conda is given as well: choose one of them");
    }
    return {};
}

Result<void> take_size(const Options& options, RunParameters& parameters)
{
    TRY_ASSIGN(parameters.walltime, through(options, "time", "-t", parse_walltime));
    TRY_ASSIGN(parameters.gpus, through(options, "gpus", "-g", parse_gpu_request));
    TRY_ASSIGN(parameters.cpus, through(options, "cpus", "-c", parse_count<k_most_cpus>));
    TRY_ASSIGN(parameters.memory_mib, through(options, "mem", "--mem", parse_memory_mib));
    TRY_ASSIGN(parameters.nodes, through(options, "nodes", "-N", parse_count<k_most_nodes>));
    TRY_ASSIGN(parameters.tasks_per_node,
               through(options, "tasks-per-node", "--tasks-per-node", parse_count<k_most_tasks>));
    TRY_ASSIGN(parameters.gpus_per_task,
               through(options, "gpus-per-task", "--gpus-per-task", parse_count<k_most_tasks>));
    return {};
}

Result<void> take_names(const Options& options, RunParameters& parameters)
{
    TRY_ASSIGN(parameters.name, through(options, "name", "-J", parse_name));
    TRY_ASSIGN(parameters.account, through(options, "account", "-A", parse_argument));
    TRY_ASSIGN(parameters.queue, through(options, "queue", "-p", parse_argument));
    TRY_ASSIGN(parameters.qos, through(options, "qos", "-q", parse_argument));
    TRY_ASSIGN(parameters.conda, through(options, "conda", "--conda", parse_argument));
    TRY_ASSIGN(parameters.container, through(options, "container", "--container", parse_container));
    TRY_ASSIGN(parameters.slurm_options, through(options, "slurm", "--slurm", parse_slurm_options));
    return {};
}

/// A shell has no links, does not outlive its tickets, and is for the current directory.
constexpr std::string_view k_of_chains[] = {
    "keytab",      "credentials", "link",   "checkpoint",
    "resume-args", "valid",       "notice", "restart-from-scratch",
    "max-links",   "gpu-hours",   "until",  "snapshot",
    "no-snapshot", "chdir"};

/// A shell is one program.
constexpr std::string_view k_of_ranks[] = {"tasks-per-node", "gpus-per-task"};

/// A rehearsal has its own links and limits, and gpuq stays attached to it.
constexpr std::string_view k_not_rehearsed[] = {
    "no-stdin",  "after",     "detach", "max-wait", "dry-run",  "pty",         "link",
    "max-links", "gpu-hours", "until",  "array",    "snapshot", "no-snapshot", "chdir"};

constexpr Option name_row(std::string_view help)
{
    return {'J', "name", "NAME", help};
}

constexpr std::array k_of_shells = {
    name_row("name of the run; default: shell"),
    Option{'N', "nodes", "N", "nodes: a shell has one"},
};

/// Defaults of a repeated run.
constexpr std::array k_of_repeats = {
    name_row("name of the run; default: that of RUN"),
    Option{'c', "cpus", "N", "CPU cores per node; default: those of RUN"},
    Option{0, "mem", "SIZE", "memory per node: 16G, 500M; default: that of RUN"},
    Option{'p', "queue", "QUEUE", "queue (Slurm partition); default: that of RUN"},
    Option{'D', "chdir", "DIR", "directory of the program; default: that of RUN"},
};

/// Options of `gpuq run` with another meaning for a sweep.
constexpr std::array k_of_sweeps = {
    Option{'t', "time", "TIME", "time of each worker: 90 (minutes), 2h, 1h30m, 1:30:00, 1-12"},
    Option{'J', "name", "NAME", "name of the sweep; default: the program's"},
    Option{0, "detach", "", "do not wait for its end"},
    Option{0, "dry-run", "", "print the command lines of the tries, submit nothing"},
    Option{0, "gpu-hours", "HOURS", "maximum GPU-hours of all tries together"},
};

/// A try runs on one node, without a terminal or input; a worker has its own links.
constexpr std::string_view k_not_of_tries[] = {
    "no-stdin",      "after",     "max-wait", "pty",   "nodes", "tasks-per-node",
    "gpus-per-task", "max-links", "until",    "array", "chdir", "restart-from-scratch",
    "valid"};

std::vector<Option> without(std::span<const std::string_view> names)
{
    std::vector<Option> table;
    std::copy_if(std::begin(k_table), std::end(k_table), std::back_inserter(table),
                 [&](const Option& row) {
                     return std::find(names.begin(), names.end(), row.name) == names.end();
                 });
    return table;
}

/// Rows with another meaning than for `gpuq run`.
void replace_rows(std::vector<Option>& table, std::span<const Option> others)
{
    for (const Option& other : others) {
        const auto is_same = [&](const Option& row) { return row.name == other.name; };
        std::replace_if(table.begin(), table.end(), is_same, other);
    }
}

Result<std::string> parse_pattern(std::string_view text)
{
    if (text.empty() || text.find('\0') != std::string_view::npos) {
        return fail(Error::Kind::usage,
                    "not a pattern of files or directories, as 'out/checkpoint-*'");
    }
    return std::string(text);
}

Result<std::vector<std::string>> parse_arguments(std::string_view text)
{
    TRY_ASSIGN(std::vector<std::string> arguments, split_arguments(text));
    if (arguments.empty()) {
        return fail(Error::Kind::usage, "no arguments given");
    }
    return arguments;
}

Result<Notice> parse_notice(std::string_view text)
{
    const auto notice = notice_from_word(text);
    return notice ? Result<Notice>(*notice)
                  : fail(Error::Kind::usage,
                         fmt::format("'{}' is not auto, USR1, USR2, TERM or none", text));
}

Result<std::chrono::minutes> parse_hours(std::string_view text)
{
    constexpr double k_most = 1e7;
    constexpr double k_minutes = 60, k_inexact = 1e-6; // 2.3 * 60 is less than 138
    double hours = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), hours);
    if (error != std::errc{} || end != text.end() || !(hours > 0) || hours > k_most) {
        return fail(Error::Kind::usage, fmt::format("'{}' is not a number of hours", text));
    }
    const auto minutes = static_cast<std::int64_t>(std::floor(hours * k_minutes + k_inexact));
    return minutes > 0 ? Result<std::chrono::minutes>(std::chrono::minutes(minutes))
                       : fail(Error::Kind::usage, fmt::format("'{}' is less than a minute", text));
}

/// A date, or a date and a time of day, in local time.
Result<Time> parse_moment(std::string_view text)
{
    const auto time = time_from_local(text);
    if (time && *time > Time{}) {
        return *time;
    }
    return fail(Error::Kind::usage,
                fmt::format("'{}' is not a date: 2026-12-24 or 2026-12-24T18:00", text));
}

Result<void> take_chain(const Options& options, RunParameters& parameters)
{
    TRY_ASSIGN(parameters.chain.link, through(options, "link", "--link", parse_duration));
    TRY_ASSIGN(parameters.chain.checkpoint,
               through(options, "checkpoint", "--checkpoint", parse_pattern));
    TRY_ASSIGN(auto resume, through(options, "resume-args", "--resume-args", parse_arguments));
    parameters.chain.resume_args = std::move(resume).value_or(std::vector<std::string>{});
    TRY_ASSIGN(auto valid, through(options, "valid", "--valid", parse_arguments));
    parameters.chain.valid = std::move(valid).value_or(std::vector<std::string>{});
    TRY_ASSIGN(parameters.chain.notice, through(options, "notice", "--notice", parse_notice));
    TRY_ASSIGN(parameters.chain.max_links,
               through(options, "max-links", "--max-links", parse_count<k_most_links>));
    TRY_ASSIGN(parameters.chain.gpu_time,
               through(options, "gpu-hours", "--gpu-hours", parse_hours));
    TRY_ASSIGN(parameters.chain.until, through(options, "until", "--until", parse_moment));
    parameters.chain.from_scratch = options.has("restart-from-scratch");
    constexpr std::chrono::seconds k_shortest{10};
    if (parameters.chain.link && *parameters.chain.link < k_shortest) {
        return wrong("--link", "a link of less than 10 s would end before it has begun");
    }
    return {};
}

} // namespace

std::span<const Option> run_option_table()
{
    return k_table;
}

Result<RunOptions> run_options(const Options& options, const std::vector<std::string>& program)
{
    if (program.empty() || program.front().empty()) {
        return fail(Error::Kind::usage,
                    "missing program: gpuq run [options] PROGRAM [ARG...]; see gpuq help run");
    }
    RunOptions result;
    result.parameters.program = program;
    TRY(take_size(options, result.parameters));
    TRY(take_names(options, result.parameters));
    TRY(take_env(options, result.parameters));
    TRY(take_progress(options, result.parameters));
    TRY(take_modules(options, result.parameters));
    TRY(take_files(options, result.parameters));
    TRY(take_chain(options, result.parameters));
    TRY_ASSIGN(result.parameters.chain.when_short,
               through(options, "credentials", "--credentials", parse_when_short));
    result.keytab = options.value("keytab");
    if (result.keytab && (result.keytab->empty() || has_control(*result.keytab))) {
        return wrong("--keytab", "invalid file name");
    }
    TRY_ASSIGN(result.after, through(options, "after", "--after", parse_argument));
    TRY_ASSIGN(result.max_wait, through(options, "max-wait", "--max-wait", parse_duration));
    result.detach = options.has("detach");
    result.dry_run = options.has("dry-run");
    result.pty = options.has("pty");
    result.no_stdin = options.has("no-stdin");
    if (options.has("snapshot") && options.has("no-snapshot")) {
        return wrong("--snapshot", "--no-snapshot is given as well: choose one of them");
    }
    if (options.has("snapshot") || options.has("no-snapshot")) {
        result.snapshot = options.has("snapshot") ? SnapshotPolicy::always : SnapshotPolicy::never;
    }
    TRY(check_terminal(result));
    return result;
}

Result<void> check_terminal(const RunOptions& options)
{
    if (options.pty && options.no_stdin) {
        return wrong("--no-stdin", "a program on a terminal reads typed input: leave out --pty");
    }
    if (options.pty && options.parameters.nodes.value_or(1) > 1) {
        return wrong("--pty", "there is one terminal, and -N starts the program on several nodes");
    }
    if (options.pty && (options.parameters.tasks_per_node || options.parameters.gpus_per_task)) {
        return wrong("--pty", "ranks can't share one terminal");
    }
    return {};
}

std::span<const Option> shell_option_table()
{
    static const std::vector<Option> k_shell_table = [] {
        std::vector<Option> table = without(k_of_chains);
        std::erase_if(table, [](const Option& row) {
            return row.name == "pty" || row.name == "progress" || row.name == "no-stdin" ||
                   std::find(std::begin(k_of_ranks), std::end(k_of_ranks), row.name) !=
                       std::end(k_of_ranks);
        });
        replace_rows(table, k_of_shells);
        return table;
    }();
    return k_shell_table;
}

std::span<const Option> notebook_option_table()
{
    static const std::vector<Option> k_notebook_table = [] {
        std::vector<Option> table(shell_option_table().begin(), shell_option_table().end());
        std::erase_if(table, [](const Option& row) {
            return row.name == "nodes" || row.name == "dry-run" || row.name == "slurm" ||
                   row.name == "max-wait" || row.name == "array" || row.name == "detach";
        });
        replace_rows(table, std::array{name_row("name of the run; default: notebook")});
        table.insert(
            table.begin(),
            {{0, "lab", "", "JupyterLab instead of the page of jupyter notebook"},
             {0, "classic", "", "the page of Notebook 6, also with Notebook 7"},
             {0, "idle", "TIME", "end it when it is unused for this long; default: 30m; never"},
             {0, "port", "PORT", "local port; default: the first free one from 8888 on"},
             {0, "browser", "", "open the page in a browser ($BROWSER or xdg-open)"},
             {0, "new", "", "start another one for the same directory"}});
        table.push_back(
            {0, "carry", "", "for gpuq notebook: carry its connections", Option::State::hidden});
        table.push_back({0, "only", "KEY", "for gpuq notebook: a run to which it returns",
                         Option::State::hidden});
        return table;
    }();
    return k_notebook_table;
}

std::span<const Option> rehearse_option_table()
{
    static const std::vector<Option> k_rehearse_table = [] {
        std::vector<Option> table = without(k_not_rehearsed);
        replace_rows(table, std::array{name_row("name of the run; default: rehearsal")});
        table.push_back({0, "within", "TIME", "how long the rehearsal may run; default: 15 min"});
        return table;
    }();
    return k_rehearse_table;
}

std::span<const Option> sweep_option_table()
{
    static const std::vector<Option> k_sweep_table = [] {
        std::vector<Option> table = without(k_not_of_tries);
        replace_rows(table, k_of_sweeps);
        table.insert(
            table.begin(),
            {{0, "over", "NAME=VALUES", "a parameter: lr=1e-4,1e-3, lr=log:1e-5..1e-2, n=2..8"},
             {0, "random", "N", "N random tries instead of all combinations"},
             {0, "seed", "S", "the same random tries again"},
             {0, "from", "FILE", "the tries of a table: CSV or JSON lines; -: standard input"},
             {0, "propose", "COMMAND", "a program that proposes tries from the results so far"},
             {0, "tries", "N", "with --propose: the most tries"},
             {0, "workers", "N", "number of jobs; default: as many as tries and GPUs, at most 16"},
             {0, "per-gpu", "N", "tries side by side in each job; default: 1"},
             {0, "metric", "NAME[:min|max]", "what to compare; default: the loss"},
             {0, "stop-early", "RULE", "end losing tries: median or asha[:eta=3,min=STEPS]"}});
        return table;
    }();
    return k_sweep_table;
}

std::span<const Option> again_option_table()
{
    static const std::vector<Option> k_again_table = [] {
        std::vector<Option> table(std::begin(k_table), std::end(k_table));
        replace_rows(table, k_of_repeats);
        table.push_back({0, "program", "", "the words after -- replace the program as well"});
        table.push_back(
            {0, "current-files", "", "not its snapshot, but the files as they are now"});
        return table;
    }();
    return k_again_table;
}

} // namespace gpuq::cli
