// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/preflight.h"

#include "runs/program_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq {
namespace {

using File = SiteContext::File;

Error not_found(std::string text)
{
    return fail(Error::Kind::not_found, std::move(text));
}

Error not_executable(std::string text)
{
    return fail(Error::Kind::not_executable, std::move(text));
}

constexpr std::string_view k_own_descriptor =
    "a pipe of this shell, as <(...) makes it, which the node can't read: write the text to a file";

std::string base_name(const std::string& path)
{
    return path.substr(path.find_last_of('/') + 1);
}

/// How the program is started. As the program of a run, a file of the working directory can be
/// given by its name, and python3 starts a script of Python.
enum class StartedAs { program, command };

class Check {
public:
    Check(const RunParameters& parameters, const SiteContext& site_context,
          std::vector<std::string> command, StartedAs started_as)
        : m_asked(parameters)
        , m_here(site_context)
        , m_command(std::move(command))
        , m_name(m_command.front())
        , m_is_program(started_as == StartedAs::program)
    {
    }

    Result<std::string> run() const
    {
        TRY(check_own_descriptors());
        const bool may_change_directory = !m_asked.sources.empty() && !m_name.starts_with('/');
        if (m_asked.container || may_change_directory || is_open(m_name)) {
            return std::string();
        }
        std::string warning;
        if (m_name.find('/') != std::string::npos) {
            TRY(check_path());
        } else {
            TRY_ASSIGN(warning, check_bare_name());
        }
        TRY(check_script_of_interpreter());
        return warning;
    }

    /// Checks the files that the options name.
    Result<void> check_files_of_options() const
    {
        for (const std::string& path : m_asked.sources) {
            if (is_own_descriptor(path)) {
                return missing_file("--source", path, k_own_descriptor);
            }
            const File file = m_here.file(absolute(path));
            const bool is_wrong =
                file == File::missing || file == File::unreadable || file == File::directory;
            if (is_wrong && certain(path)) {
                return missing_file("--source", path,
                                    file == File::missing      ? "not found"
                                    : file == File::unreadable ? "not readable for you"
                                                               : "is a directory");
            }
        }
        if (m_asked.venv) {
            TRY(check_venv(*m_asked.venv));
        }
        for (const auto& [option, value] :
             {std::pair{"--conda", &m_asked.conda}, std::pair{"--container", &m_asked.container}}) {
            if (*value && is_path(**value) && m_here.file(absolute(**value)) == File::missing &&
                certain(**value)) {
                return missing_file(option, **value, "not found");
            }
        }
        return {};
    }

private:
    std::string absolute(const std::string& path) const
    {
        return path.starts_with('/') ? path : m_here.work_dir + "/" + path;
    }

    /// Whether the nodes see the same at this path.
    bool certain(const std::string& path) const
    {
        return m_here.same_on_nodes && m_here.same_on_nodes(absolute(path));
    }

    /// Whether a part of the word is replaced before it is used.
    bool is_open(const std::string& word) const
    {
        return std::any_of(
            m_asked.placeholders.begin(), m_asked.placeholders.end(),
            [&](const std::string& part) { return word.find(part) != std::string::npos; });
    }

    /// `/dev/fd/63`, as a shell writes `<(command)`: a pipe of this process, which no other has.
    bool is_own_descriptor(const std::string& word) const
    {
        constexpr std::string_view k_descriptors[] = {"/dev/fd/", "/proc/self/fd/"};
        constexpr std::string_view k_standard = "012";
        const bool is_descriptor =
            std::any_of(std::begin(k_descriptors), std::end(k_descriptors),
                        [&](std::string_view place) { return word.starts_with(place); });
        const std::string name = is_descriptor ? base_name(word) : "";
        const bool is_standard = name.size() == 1 && k_standard.find(name[0]) != std::string::npos;
        return is_descriptor && !is_standard && m_here.file(word) == File::other;
    }

    Result<void> check_own_descriptors() const
    {
        const auto found =
            std::find_if(m_command.begin(), m_command.end(),
                         [this](const std::string& word) { return is_own_descriptor(word); });
        return found == m_command.end()
                   ? Result<void>()
                   : fail(Error::Kind::usage, fmt::format("{}: {}", *found, k_own_descriptor));
    }

    Error missing_file(std::string_view option, const std::string& path,
                       std::string_view what) const
    {
        return fail(Error::Kind::usage, fmt::format("{} {}: {}", option, path, what));
    }

    /// True if the value can only be a path, not the name of an environment or of an image.
    static bool is_path(const std::string& value)
    {
        const bool is_image =
            value.find(':') == std::string::npos &&
            (value.ends_with(".sif") || value.ends_with(".simg") || value.ends_with(".sqsh"));
        return is_image || value.starts_with('/') || value.starts_with("./") ||
               value.starts_with("../");
    }

    Result<void> check_venv(const std::string& venv) const
    {
        const std::string python = venv + "/bin/python";
        if (m_here.file(absolute(venv)) == File::missing && certain(venv)) {
            return missing_file("--venv", venv, "not found");
        }
        const File file = m_here.file(absolute(python));
        if (file == File::executable || !certain(python)) {
            return {};
        }
        return missing_file("--venv", venv,
                            file == File::missing
                                ? "has no bin/python; python3 -m venv DIR makes an environment"
                                : "its bin/python is not executable");
    }

    /// Checks a program that was given as a path.
    Result<void> check_path() const
    {
        const File file = m_here.file(absolute(m_name));
        if (is_for_python(file)) {
            return {};
        }
        if (file == File::executable) {
            return check_first_line(absolute(m_name));
        }
        return certain(m_name) ? Result<void>(refusal(file)) : Result<void>();
    }

    Error refusal(File file) const
    {
        switch (file) {
        case File::missing:
            return not_found(fmt::format("{}: not found", m_name));
        case File::directory:
            return not_executable(fmt::format("{}: is a directory, not a program", m_name));
        case File::unreadable:
            return not_executable(
                fmt::format("{}: neither readable nor executable for you", m_name));
        case File::plain:
            return not_executable(fmt::format("{0}: not executable: chmod +x {0}, or name its "
                                              "interpreter: gpuq run bash {0}",
                                              m_name));
        default:
            return not_executable(fmt::format("{}: not a regular file", m_name));
        }
    }

    /// Whether gpuq starts the program by python3.
    bool is_for_python(File file) const
    {
        return m_is_program && m_name.ends_with(".py") &&
               (file == File::plain ||
                (file == File::executable && lacks_interpreter(absolute(m_name), m_here)));
    }

    /// Checks a program without a slash: a file in the working directory, else a command that the
    /// node looks up in PATH.
    Result<std::string> check_bare_name() const
    {
        const File file = m_is_program ? m_here.file(absolute(m_name)) : File::missing;
        if (is_for_python(file)) {
            return std::string();
        }
        const auto found =
            file == File::executable ? std::optional(absolute(m_name)) : path_of_command(m_name);
        if (found && (file == File::executable || !path_is_of_node())) {
            TRY(certain(*found) ? check_first_line(*found) : Result<void>());
            return std::string();
        }
        TRY(found ? Result<void>() : check_syntax());
        if (path_is_of_node()) {
            return std::string();
        }
        if (!is_script_name(m_name)) {
            return fmt::format("{} is not in PATH on this host; the node may have it", m_name);
        }
        if (!certain(m_name)) {
            return std::string();
        }
        if (!m_is_program) {
            return not_found(fmt::format("{0}: not found in PATH; for a file of the working "
                                         "directory, write ./{0}",
                                         m_name));
        }
        if (file == File::missing) {
            return not_found(
                fmt::format("{}: not found: neither in {} nor in PATH", m_name, m_here.work_dir));
        }
        return refusal(file);
    }

    /// Refuses words that only a shell understands.
    Result<void> check_syntax() const
    {
        if (m_is_program && is_assignment(m_name)) {
            return not_found(fmt::format("{0}: not found; to set a variable, write --env {0} "
                                         "before the program",
                                         m_name));
        }
        if (m_name.find_first_of(" \t\n") != std::string::npos) {
            return not_found(fmt::format("{}: not found; give the program and each of its "
                                         "arguments as a word of its own, or a command line to a "
                                         "shell: gpuq run bash -c '...'",
                                         m_name));
        }
        return is_shell_builtin(m_name)
                   ? Result<void>(not_found(
                         fmt::format("{}: a command of the shell, not a program: gpuq run bash -c "
                                     "'{} ...'",
                                     m_name, m_name)))
                   : Result<void>();
    }

    /// True if PATH is set on the node or differs from the current one.
    bool path_is_of_node() const
    {
        return !m_asked.modules.empty() || m_asked.conda || m_asked.venv ||
               std::any_of(m_asked.env.begin(), m_asked.env.end(),
                           [](const auto& pair) { return pair.first == "PATH"; });
    }

    /// Its path if it is in PATH on this host. `also`: another kind of file that counts.
    std::optional<std::string> path_of_command(const std::string& name,
                                               File also = File::executable) const
    {
        const std::string path = m_here.variable("PATH").value_or("/usr/bin:/bin");
        for (std::size_t at = 0; at <= path.size();) {
            const std::size_t end = std::min(path.find(':', at), path.size());
            const std::string directory = path.substr(at, end - at);
            const std::string found = absolute((directory.empty() ? "." : directory) + "/" + name);
            const File file = m_here.file(found);
            if (file == File::executable || file == also) {
                return found;
            }
            at = end + 1;
        }
        return std::nullopt;
    }

    /// Parses `#!` as the kernel does: an interpreter up to the first blank, then one argument.
    Result<void> check_first_line(const std::string& path) const
    {
        constexpr std::size_t k_longest = 255;
        const std::string text = m_here.text ? m_here.text(path) : "";
        std::string line = text.substr(0, text.find('\n'));
        if (!line.starts_with("#!") || line.size() > k_longest) {
            return {};
        }
        line.erase(0, std::min(line.find_first_not_of(" \t", 2), line.size()));
        const std::string interpreter = line.substr(0, line.find_first_of(" \t"));
        const bool is_env = base_name(interpreter) == "env";
        if ((interpreter.ends_with('\r') || (is_env && line.ends_with('\r'))) && certain(path)) {
            return not_found(fmt::format("{}: its first line ends with a carriage return, so that "
                                         "no interpreter has this name; convert it: sed -i "
                                         "'s/\\r$//' {}",
                                         m_name, m_name));
        }
        if (interpreter.empty() || m_here.file(absolute(interpreter)) == File::executable ||
            !certain(interpreter)) {
            return {};
        }
        return m_here.file(absolute(interpreter)) == File::missing
                   ? not_found(fmt::format("{}: the interpreter in its first line, {}, does not "
                                           "exist",
                                           m_name, interpreter))
                   : not_executable(fmt::format("{}: the interpreter in its first line, {}, is not "
                                                "executable",
                                                m_name, interpreter));
    }

    /// Checks `python3 -u train.py` and `bash run.sh`; for `train.py` alone, gpuq adds python3
    /// itself.
    Result<void> check_script_of_interpreter() const
    {
        const auto index = index_of_script(m_command);
        if (!index) {
            return {};
        }
        const std::string& script = m_command[*index];
        const bool may_be_elsewhere = script.empty() || is_open(script) ||
                                      (!m_asked.sources.empty() && !script.starts_with('/'));
        if (may_be_elsewhere || (is_shell(m_name) && may_be_in_path(script))) {
            return {};
        }
        const File file = m_here.file(absolute(script));
        if (file == File::missing && certain(script)) {
            return not_found(fmt::format("{}: not found", script));
        }
        if (file == File::unreadable && certain(script)) {
            return not_executable(fmt::format("{}: not readable for you", script));
        }
        return {};
    }

    /// A shell looks for a script without a slash in PATH, if the working directory has none.
    bool may_be_in_path(const std::string& script) const
    {
        return script.find('/') == std::string::npos &&
               (path_is_of_node() || path_of_command(script, File::plain));
    }

    const RunParameters& m_asked;
    const SiteContext& m_here;
    const std::vector<std::string> m_command;
    const std::string& m_name;
    const bool m_is_program;
};

/// Checks a command, and those behind the wrappers in it.
Result<std::string> check_arguments(const RunParameters& parameters,
                                    const SiteContext& site_context,
                                    std::vector<std::string> command, StartedAs as)
{
    for (;; as = StartedAs::command) {
        TRY_ASSIGN(std::string warning, Check(parameters, site_context, command, as).run());
        const auto wrapped = index_of_wrapped(command);
        if (!warning.empty() || !wrapped) {
            return warning;
        }
        command.erase(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(*wrapped));
    }
}

} // namespace

bool lacks_interpreter(const std::string& path, const SiteContext& site_context)
{
    constexpr char k_elf = 0x7f; // the first byte of an executable of this system
    const std::string text = site_context.text ? site_context.text(path) : "";
    return !text.empty() && text.front() != k_elf && !text.starts_with("#!");
}

Result<std::string> check_program(const RunParameters& parameters, const SiteContext& site_context)
{
    if (parameters.after) { // the earlier run may create any file
        return std::string();
    }
    TRY(Check(parameters, site_context, parameters.program, StartedAs::program)
            .check_files_of_options());
    TRY_ASSIGN(const std::string warning,
               check_arguments(parameters, site_context, parameters.program, StartedAs::program));
    if (parameters.chain.valid.empty()) {
        return warning;
    }
    RunParameters with_checkpoint = parameters;
    with_checkpoint.placeholders.emplace_back("{}");
    TRY_ASSIGN(const std::string more,
               check_command("--valid", parameters.chain.valid, with_checkpoint, site_context));
    return warning.empty() ? more : warning;
}

Result<std::string> check_command(std::string_view option, const std::vector<std::string>& command,
                                  const RunParameters& parameters, const SiteContext& site_context)
{
    if (command.empty() || parameters.after) {
        return std::string();
    }
    auto checked = check_arguments(parameters, site_context, command, StartedAs::command);
    if (!checked) {
        return fail(Error::Kind::usage, fmt::format("{}: {}", option, checked.error().text));
    }
    return checked->empty() ? std::string() : fmt::format("{}: {}", option, *checked);
}

} // namespace gpuq
