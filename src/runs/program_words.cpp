// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/program_words.h"

#include <algorithm>
#include <iterator>

namespace gpuq {
namespace {

using Arguments = std::vector<std::string>;

/// Endings of script names. Users keep scripts in their own directories; a node has none in
/// /usr/bin.
constexpr std::string_view k_script_endings[] = {".py", ".sh", ".bash", ".zsh", ".csh", ".pl",
                                                 ".rb", ".jl", ".R",    ".r",   ".lua", ".js"};

/// The options of an interpreter that decide where its script is; all others take no separate
/// value.
struct Interpreter {
    std::string_view name;
    std::string_view code;        ///< letters of options whose value replaces the script
    std::string_view values;      ///< letters of other options with a value
    std::string_view long_code;   ///< as `code`: long options, each between blanks
    std::string_view long_values; ///< as `values`
    bool code_is_operand = false; ///< `bash -c CODE`: CODE is where the script would be
    std::string_view launchers;   ///< modules for -m that are launchers, each between blanks
};

constexpr std::string_view k_torch_modules =
    " torch.distributed.run torch.distributed.launch accelerate.commands.launch "
    "deepspeed.launcher.runner ";

constexpr Interpreter k_shell{"", "", "oO", "", " --rcfile --init-file ", true, ""};
constexpr Interpreter k_python{"python", "cm",           "WX", "", " --check-hash-based-pycs ",
                               false,    k_torch_modules};
constexpr Interpreter k_interpreters[] = {
    {"perl", "eE", "IMm", "", "", false, ""},
    {"ruby", "e", "rIC", "", "", false, ""},
    {"Rscript", "e", "", "", "", false, ""},
    {"julia", "eE", "tpJLCH", " --eval --print ", " --threads --procs --sysimage --load ", false,
     ""},
    {"node", "ep", "r", " --eval --print ", " --require --import --loader ", false, ""},
    {"lua", "", "el", "", "", false, ""},
};
constexpr std::string_view k_shells[] = {"sh", "bash", "dash", "zsh", "ksh", "mksh"};

/// Programs that start another one. Those of k_module_launchers also start a module of Python.
constexpr std::string_view k_module_launchers[] = {"torchrun", "accelerate", "deepspeed"};
constexpr std::string_view k_launchers[] = {"horovodrun",
                                            "mpirun",
                                            "mpiexec",
                                            "orterun",
                                            "srun",
                                            "env",
                                            "nice",
                                            "ionice",
                                            "time",
                                            "timeout",
                                            "nohup",
                                            "setsid",
                                            "stdbuf",
                                            "unbuffer",
                                            "numactl",
                                            "taskset",
                                            "strace",
                                            "ltrace",
                                            "gdb",
                                            "perf",
                                            "valgrind",
                                            "nsys",
                                            "ncu",
                                            "nvprof",
                                            "py-spy",
                                            "scalene",
                                            "kernprof",
                                            "coverage",
                                            "uv",
                                            "poetry",
                                            "pipenv",
                                            "pdm",
                                            "hatch",
                                            "pixi",
                                            "conda",
                                            "mamba",
                                            "micromamba",
                                            "apptainer",
                                            "singularity",
                                            "xvfb-run",
                                            "compute-sanitizer"};

std::string_view base_name(std::string_view path)
{
    return path.substr(path.find_last_of('/') + 1);
}

template <typename Range>
bool is_one_of(std::string_view word, const Range& list)
{
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Whether `list`, with blanks around each item, contains the word.
bool is_among(std::string_view word, std::string_view list)
{
    return word.find(' ') == std::string_view::npos &&
           list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

const Interpreter* interpreter(std::string_view word)
{
    const std::string_view name = base_name(word);
    if (is_python(name)) {
        return &k_python;
    }
    if (is_one_of(name, k_shells)) {
        return &k_shell;
    }
    const auto found = std::find_if(std::begin(k_interpreters), std::end(k_interpreters),
                                    [&](const Interpreter& row) { return row.name == name; });
    return found == std::end(k_interpreters) ? nullptr : found;
}

bool is_module_launcher(std::string_view word)
{
    return is_one_of(base_name(word), k_module_launchers);
}

bool is_launcher(std::string_view word)
{
    return is_module_launcher(word) || is_one_of(base_name(word), k_launchers);
}

std::optional<std::size_t> end_in_launcher(const Arguments& command, std::size_t at,
                                           bool of_modules);

/// The effect of one word of an interpreter's options.
enum class Effect { none, value_follows, code_follows, code_attached };

Effect effect_of(const Interpreter& row, std::string_view word)
{
    if (word.starts_with("--")) {
        return is_among(word, row.long_code)     ? Effect::code_follows
               : is_among(word, row.long_values) ? Effect::value_follows
                                                 : Effect::none;
    }
    for (std::size_t i = 1; i < word.size(); ++i) {
        const bool is_last = i + 1 == word.size();
        if (row.code.find(word[i]) != std::string_view::npos) {
            return is_last ? Effect::code_follows : Effect::code_attached;
        }
        if (row.values.find(word[i]) != std::string_view::npos) {
            // A shell takes the value of an option in the next word even if text follows the
            // letter.
            return is_last || row.code_is_operand ? Effect::value_follows : Effect::none;
        }
    }
    return Effect::none;
}

/// The end of the program whose interpreter is the word before `at`. All words if it has no script.
std::optional<std::size_t> end_in_interpreter(const Interpreter& row, const Arguments& command,
                                              std::size_t at)
{
    for (; at < command.size(); ++at) {
        const std::string_view word = command[at];
        if (word == "--") {
            return std::min(at + 2, command.size());
        }
        if (word.size() < 2 || !(word[0] == '-' || (row.code_is_operand && word[0] == '+'))) {
            return at + 1; // the script; `-` and an empty word as well
        }
        const Effect effect = effect_of(row, word);
        if (effect == Effect::code_attached) {
            return at + 1;
        }
        if (effect == Effect::code_follows) {
            const bool starts_another = at + 1 < command.size() && word.ends_with('m') &&
                                        is_among(command[at + 1], row.launchers);
            return starts_another ? end_in_launcher(command, at + 2, true)
                                  : std::min(at + 2, command.size());
        }
        at += effect == Effect::value_follows ? 1 : 0;
    }
    return command.size();
}

/// The end of the program that a launcher before `at` starts. The values of a launcher's options
/// are not known: its first word that can only be a program is taken.
std::optional<std::size_t> end_in_launcher(const Arguments& command, std::size_t at,
                                           bool of_modules)
{
    for (; at < command.size(); ++at) {
        const std::string_view word = command[at];
        if (of_modules && (word == "-m" || word == "--module") && at + 1 < command.size()) {
            return at + 2;
        }
        if (const Interpreter* const row = interpreter(word)) {
            return end_in_interpreter(*row, command, at + 1);
        }
        of_modules = of_modules || is_module_launcher(word);
        const bool may_be_path = !word.starts_with('-') && word.find('=') == std::string_view::npos;
        if (may_be_path && is_script_name(word)) {
            return at + 1;
        }
    }
    return std::nullopt;
}

/// Letters of options of python and of shells with which the next word may be no script: code, a
/// module, standard input, help.
constexpr std::string_view k_python_without_script = "cmhV?";
constexpr std::string_view k_shell_without_script = "cs";
/// Long options that leave the script where it is; others may print something and end.
constexpr std::string_view k_plain_long_options =
    " --login --norc --noprofile --posix --verbose --rcfile --init-file --check-hash-based-pycs ";

std::optional<std::size_t> script_behind_options(const Interpreter& row, const Arguments& command)
{
    const std::string_view without =
        row.code_is_operand ? k_shell_without_script : k_python_without_script;
    for (std::size_t at = 1; at < command.size(); ++at) {
        const std::string_view word = command[at];
        if (word == "--") {
            return at + 1 < command.size() ? std::optional(at + 1) : std::nullopt;
        }
        if (word.empty() || word == "-") {
            return std::nullopt;
        }
        if (word[0] != '-' && !(row.code_is_operand && word[0] == '+')) {
            return at;
        }
        const bool is_long = word.starts_with("--");
        if (is_long ? !is_among(word, k_plain_long_options)
                    : word.find_first_of(without, 1) != std::string_view::npos) {
            return std::nullopt;
        }
        at += effect_of(row, word) == Effect::value_follows ? 1 : 0;
    }
    return std::nullopt;
}

/// The script of a launcher that is started as a module: `python3 -m torch.distributed.run
/// train.py`.
std::optional<std::size_t> script_of_module(const Arguments& command)
{
    const auto option = std::find(command.begin(), command.end(), "-m");
    const auto at = static_cast<std::size_t>(option - command.begin());
    if (at + 1 >= command.size() || !is_among(command[at + 1], k_torch_modules) ||
        std::any_of(command.begin() + 1, option, [](const std::string& word) {
            return !word.starts_with('-') || word.size() < 2;
        })) {
        return std::nullopt;
    }
    const auto end = end_in_launcher(command, at + 2, true);
    return end && is_script_name(command[*end - 1]) ? std::optional(*end - 1) : std::nullopt;
}

/// Whether an option of a launcher may change the directory.
bool may_move(std::string_view word)
{
    constexpr std::string_view k_parts[] = {"dir", "cwd", "-C", "-D", "-wd"};
    return std::any_of(std::begin(k_parts), std::end(k_parts), [&](std::string_view part) {
        return word.starts_with('-') && word.find(part) != std::string_view::npos;
    });
}

/// The script of Python that a launcher starts: `mpirun -n 2 python3 train.py`. In a
/// container there may be other files.
std::optional<std::size_t> script_in_launcher(const Arguments& command)
{
    constexpr std::string_view k_with_containers[] = {"apptainer", "singularity", "srun"};
    if (is_one_of(base_name(command.front()), k_with_containers)) {
        return std::nullopt;
    }
    for (std::size_t at = 1; at < command.size() && !may_move(command[at]); ++at) {
        if (is_python(base_name(command[at]))) {
            const Arguments program(command.begin() + static_cast<std::ptrdiff_t>(at),
                                    command.end());
            const auto script = script_behind_options(k_python, program);
            return script && is_script_name(program[*script]) ? std::optional(at + *script)
                                                              : std::nullopt;
        }
    }
    return std::nullopt;
}

/// A program that starts the one behind its options and operands.
struct Wrapper {
    std::string_view name;
    std::string_view flags;  ///< letters of options without a value
    std::string_view values; ///< letters of options with one
    std::size_t operands;    ///< before the program
    std::string_view long_flags;
};

constexpr Wrapper k_wrappers[] = {
    {"env", "0v", "u", 0, " --null --debug "},
    {"nice", "", "n", 0, ""},
    {"nohup", "", "", 0, ""},
    {"setsid", "cfw", "", 0, " --ctty --fork --wait "},
    {"stdbuf", "", "ioe", 0, ""},
    {"timeout", "v", "ks", 1, " --foreground --preserve-status --verbose "},
};

/// Long options that change where the program behind `env` is.
constexpr std::string_view k_moving_options[] = {"--chdir=", "--split-string=", "--unset=PATH"};

/// The number of words that an option of a wrapper takes; 0: not known.
std::size_t size_of_option(const Wrapper& wrapper, std::string_view word)
{
    if (word.starts_with("--")) {
        const bool is_moving =
            std::any_of(std::begin(k_moving_options), std::end(k_moving_options),
                        [&](std::string_view option) { return word.starts_with(option); });
        const bool has_value = word.find('=') != std::string_view::npos;
        return !is_moving && (has_value || is_among(word, wrapper.long_flags)) ? 1 : 0;
    }
    for (std::size_t i = 1; i < word.size(); ++i) {
        if (wrapper.values.find(word[i]) != std::string_view::npos) {
            return i + 1 == word.size() ? 2 : 1;
        }
        if (wrapper.flags.find(word[i]) == std::string_view::npos) {
            return 0;
        }
    }
    return word.size() > 1 ? 1 : 0;
}

} // namespace

std::optional<std::size_t> index_of_wrapped(const Arguments& command)
{
    const auto* const wrapper =
        std::find_if(std::begin(k_wrappers), std::end(k_wrappers),
                     [&](const Wrapper& row) { return row.name == base_name(command.front()); });
    if (wrapper == std::end(k_wrappers)) {
        return std::nullopt;
    }
    std::size_t at = 1;
    while (at < command.size() && command[at].starts_with('-') && command[at] != "--") {
        const std::size_t size = size_of_option(*wrapper, command[at]);
        if (size == 0) {
            return std::nullopt;
        }
        at += size;
    }
    at += at < command.size() && command[at] == "--" ? 1 : 0;
    for (; wrapper->name == "env" && at < command.size() &&
           command[at].find('=') != std::string::npos;
         ++at) {
        if (command[at].starts_with("PATH=")) {
            return std::nullopt;
        }
    }
    at += wrapper->operands;
    return at < command.size() ? std::optional(at) : std::nullopt;
}

bool is_shell_builtin(std::string_view name)
{
    constexpr std::string_view k_builtins[] = {
        ".",     ":",      "alias", "bg",       "builtin", "cd",     "declare", "eval",   "exec",
        "exit",  "export", "fg",    "function", "if",      "for",    "jobs",    "module", "popd",
        "pushd", "set",    "shopt", "source",   "trap",    "ulimit", "umask",   "unset",  "while"};
    return is_one_of(name, k_builtins);
}

bool is_assignment(std::string_view word)
{
    constexpr std::string_view k_letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const std::size_t equals = word.find('=');
    return equals != std::string_view::npos && equals > 0 && !(word[0] >= '0' && word[0] <= '9') &&
           word.find_first_not_of(k_letters) == equals;
}

bool is_shell(std::string_view program)
{
    return is_one_of(base_name(program), k_shells);
}

std::optional<std::size_t> index_of_script(const Arguments& command)
{
    const Interpreter* const row = interpreter(command.front());
    if (row == &k_python) {
        const auto launched = script_of_module(command);
        return launched ? launched : script_behind_options(*row, command);
    }
    if (row == &k_shell) {
        return script_behind_options(*row, command);
    }
    if (row != nullptr) {
        return command.size() > 1 && is_script_name(command[1]) ? std::optional<std::size_t>(1)
                                                                : std::nullopt;
    }
    if (is_module_launcher(command.front())) {
        const auto end = end_in_launcher(command, 1, true);
        return end && is_script_name(command[*end - 1]) ? std::optional(*end - 1) : std::nullopt;
    }
    return is_launcher(command.front()) ? script_in_launcher(command) : std::nullopt;
}

bool is_python(std::string_view program)
{
    constexpr std::string_view k_name = "python";
    const std::string_view name = base_name(program);
    return name.starts_with(k_name) &&
           name.find_first_not_of("0123456789.", k_name.size()) == std::string_view::npos;
}

bool is_script_name(std::string_view name)
{
    return std::any_of(std::begin(k_script_endings), std::end(k_script_endings),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

std::optional<std::size_t> size_of_program(const Arguments& command)
{
    if (const Interpreter* const row = interpreter(command.front())) {
        return end_in_interpreter(*row, command, 1);
    }
    return is_launcher(command.front())
               ? end_in_launcher(command, 1, is_module_launcher(command.front()))
               : std::optional<std::size_t>{1};
}

} // namespace gpuq
