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

std::string base_name(const std::string& path)
{
    return path.substr(path.find_last_of('/') + 1);
}

/// How the program is started. gpuq starts a file of the working directory by its name, and a
/// script of Python by python3.
enum class StartedBy { gpuq, wrapper };

class Check {
public:
    Check(const RunParameters& parameters, const SiteContext& site_context,
          std::vector<std::string> command, StartedBy started_by)
        : m_asked(parameters)
        , m_here(site_context)
        , m_command(std::move(command))
        , m_name(m_command.front())
        , m_is_by_gpuq(started_by == StartedBy::gpuq)
    {
    }

    Result<std::string> run() const
    {
        const bool may_change_directory = !m_asked.sources.empty() && !m_name.starts_with('/');
        if (m_asked.container || may_change_directory) {
            return std::string();
        }
        if (m_name.find('/') != std::string::npos) {
            TRY(check_path());
        } else {
            TRY_ASSIGN(std::string warning, check_bare_name());
            if (!warning.empty()) {
                return warning;
            }
        }
        TRY(check_script_of_interpreter());
        return std::string();
    }

    /// Checks the files that the options name.
    Result<void> check_files_of_options() const
    {
        for (const std::string& path : m_asked.sources) {
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

    bool certain(const std::string& path) const
    {
        return m_here.same_on_nodes && m_here.same_on_nodes(absolute(path));
    }

    Error missing_file(std::string_view option, const std::string& path,
                       std::string_view what) const
    {
        return fail(Error::Kind::usage, fmt::format("{} {}: {}", option, path, what));
    }

    /// True if the value can only be a path, not the name of an environment or of an image.
    static bool is_path(const std::string& value)
    {
        return value.starts_with('/') || value.starts_with("./") || value.starts_with("../");
    }

    Result<void> check_venv(const std::string& venv) const
    {
        const std::string python = venv + "/bin/python";
        if (m_here.file(absolute(venv)) == File::missing && certain(venv)) {
            return missing_file("--venv", venv, "not found");
        }
        if (m_here.file(absolute(python)) == File::missing && certain(python)) {
            return missing_file("--venv", venv,
                                "has no bin/python; python3 -m venv DIR makes an environment");
        }
        return {};
    }

    /// Checks a program that was given as a path.
    Result<void> check_path() const
    {
        const File file = m_here.file(absolute(m_name));
        if (file == File::executable) {
            return check_first_line();
        }
        if (is_for_python(file)) {
            return {};
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
        return m_is_by_gpuq && file == File::plain && m_name.ends_with(".py");
    }

    /// Checks a program without a slash: a file in the working directory, else a command that the
    /// node looks up in PATH.
    Result<std::string> check_bare_name() const
    {
        const File file = m_is_by_gpuq ? m_here.file(absolute(m_name)) : File::missing;
        if (file == File::executable) {
            TRY(check_first_line());
            return std::string();
        }
        if (is_for_python(file) || is_in_path(m_name)) {
            return std::string();
        }
        TRY(check_syntax());
        if (path_is_of_node()) {
            return std::string();
        }
        if (!is_script_name(m_name)) {
            return fmt::format("{} is not in PATH on this host; the node may have it", m_name);
        }
        if (!certain(m_name)) {
            return std::string();
        }
        if (!m_is_by_gpuq) {
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
        if (m_is_by_gpuq && is_assignment(m_name)) {
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

    /// `also`: another kind of file that counts.
    bool is_in_path(const std::string& name, File also = File::executable) const
    {
        const std::string path = m_here.variable("PATH").value_or("/usr/bin:/bin");
        for (std::size_t at = 0; at <= path.size();) {
            const std::size_t end = std::min(path.find(':', at), path.size());
            const std::string directory = path.substr(at, end - at);
            const File file = m_here.file(absolute(directory + "/" + name));
            if (file == File::executable || file == also) {
                return true;
            }
            at = end + 1;
        }
        return false;
    }

    /// Parses `#!` as the kernel does: an interpreter up to the first blank, then one argument.
    Result<void> check_first_line() const
    {
        constexpr std::size_t k_longest = 255;
        const std::string text = m_here.text ? m_here.text(absolute(m_name)) : "";
        std::string line = text.substr(0, text.find('\n'));
        if (!line.starts_with("#!") || line.size() > k_longest) {
            return {};
        }
        line.erase(0, std::min(line.find_first_not_of(" \t", 2), line.size()));
        const std::string interpreter = line.substr(0, line.find_first_of(" \t"));
        const bool is_env = base_name(interpreter) == "env";
        if ((interpreter.ends_with('\r') || (is_env && line.ends_with('\r'))) && certain(m_name)) {
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
        const bool may_be_elsewhere =
            script.empty() || (!m_asked.sources.empty() && !script.starts_with('/'));
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
               (path_is_of_node() || is_in_path(script, File::plain));
    }

    const RunParameters& m_asked;
    const SiteContext& m_here;
    const std::vector<std::string> m_command;
    const std::string& m_name;
    const bool m_is_by_gpuq;
};

} // namespace

Result<std::string> check_program(const RunParameters& parameters, const SiteContext& site_context)
{
    if (parameters.after) { // the earlier run may create any file
        return std::string();
    }
    std::vector<std::string> command = parameters.program;
    TRY(Check(parameters, site_context, command, StartedBy::gpuq).check_files_of_options());
    for (StartedBy by = StartedBy::gpuq;; by = StartedBy::wrapper) {
        TRY_ASSIGN(std::string warning, Check(parameters, site_context, command, by).run());
        const auto wrapped = index_of_wrapped(command);
        if (!warning.empty() || !wrapped) {
            return warning;
        }
        command.erase(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(*wrapped));
    }
}

} // namespace gpuq
