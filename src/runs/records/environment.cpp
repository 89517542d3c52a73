// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/environment.h"

#include <fmt/format.h>

#include <iterator>

namespace gpuq {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view k_image = "{image}";

/// `bash -c SCRIPT gpuq FIRST...`: FIRST becomes "$1", "$2", ...
Strings bash(std::string script, Strings first)
{
    Strings arguments = {"bash", "--noprofile", "--norc", "-c", std::move(script), "gpuq"};
    arguments.insert(arguments.end(), std::make_move_iterator(first.begin()),
                     std::make_move_iterator(first.end()));
    return arguments;
}

// "$1": the file; then the command. The file may exit the shell (exit, set -e) and change its
// options. Its output must not mix with the program's, and it must not read the program's input.
constexpr const char* k_source_wrapper = R"(gpuq_words=("$@")
gpuq_fail() {
    printf 'gpuq: --source %q %s on %s\n' "${gpuq_words[0]}" "$1" "$HOSTNAME" >&2
    trap - EXIT
    exit 125
}
[ -r "$1" ] || gpuq_fail 'can not be read'
trap 'gpuq_fail "ended with exit status $?"' EXIT
set --
. "${gpuq_words[0]}" </dev/null >&2
gpuq_status=$?
[ "$gpuq_status" -eq 0 ] || gpuq_fail "ended with exit status $gpuq_status"
trap - EXIT
set +eu
set -- "${gpuq_words[@]}"
unset gpuq_words gpuq_status
unset -f gpuq_fail
shift
exec -- "$@"
)";

// "$1": the directory; then the command.
constexpr const char* k_venv_wrapper = R"(if [ ! -x "$1/bin/python" ]; then
    printf 'gpuq: --venv %q: no bin/python in it on %s\n' "$1" "$HOSTNAME" >&2
    exit 125
fi
export VIRTUAL_ENV="$1" PATH="$1/bin${PATH:+:$PATH}"
unset PYTHONHOME
shift
exec -- "$@"
)";

// "$1": the number of modules; then their names, then the command. The init files must not see
// these positional parameters.
constexpr const char* k_module_wrapper = R"(gpuq_words=("$@")
set --
{}set -- "${{gpuq_words[@]}}"
unset gpuq_words
gpuq_count=$1
shift
while [ "$gpuq_count" -gt 0 ]; do
    module load "$1" || {{
        printf 'gpuq: --module %q could not be loaded on %s\n' "$1" "$HOSTNAME" >&2
        exit 125
    }}
    shift
    gpuq_count=$((gpuq_count - 1))
done
unset gpuq_count
exec -- "$@"
)";

// "$1": the environment; then the command.
constexpr const char* k_conda_wrapper = R"(gpuq_words=("$@")
set --
{}set -- "${{gpuq_words[@]}}"
unset gpuq_words
conda activate "$1" || {{
    printf 'gpuq: --conda %q could not be activated on %s; conda env list shows the existing ones\n' "$1" "$HOSTNAME" >&2
    exit 125
}}
shift
exec -- "$@"
)";

Strings module_arguments(const Strings& modules)
{
    if (modules.empty()) {
        return {};
    }
    Strings first = {fmt::format("{}", modules.size())};
    first.insert(first.end(), modules.begin(), modules.end());
    return bash(fmt::format(k_module_wrapper, k_find_module), first);
}

Strings conda_arguments(const std::optional<std::string>& conda)
{
    if (!conda) {
        return {};
    }
    return bash(fmt::format(k_conda_wrapper, k_find_conda), {*conda});
}

Strings venv_arguments(const std::optional<std::string>& venv)
{
    return venv ? bash(k_venv_wrapper, {*venv}) : Strings{};
}

void append(Strings& arguments, const Strings& more)
{
    arguments.insert(arguments.end(), more.begin(), more.end());
}

} // namespace

const char* const k_find_module =
    R"(for gpuq_init in "${MODULESHOME:+$MODULESHOME/init/bash}" "${LMOD_PKG:+$LMOD_PKG/init/bash}" \
    /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
    if [ -n "$gpuq_init" ] && [ -r "$gpuq_init" ]; then
        . "$gpuq_init"
        break
    fi
done
unset gpuq_init
if ! type module >/dev/null 2>&1; then
    printf 'gpuq: --module: %s has no environment modules (no init file of Lmod or Modules)\n' "$HOSTNAME" >&2
    exit 125
fi
)";

const char* const k_find_conda = R"(gpuq_conda=$(type -P conda) || gpuq_conda=${CONDA_EXE:-}
if [ -z "$gpuq_conda" ]; then
    printf 'gpuq: --conda: no conda in PATH on %s; load its module with --module, or add it to PATH\n' "$HOSTNAME" >&2
    exit 125
fi
gpuq_hook=$("$gpuq_conda" shell.bash hook) || {
    printf 'gpuq: --conda: %s does not work on %s\n' "$gpuq_conda" "$HOSTNAME" >&2
    exit 125
}
eval "$gpuq_hook"
unset gpuq_conda gpuq_hook
)";

std::vector<std::string> default_container_command()
{
    return {"apptainer", "exec", "--nv", std::string(k_image)};
}

std::vector<std::string> container_arguments(const std::vector<std::string>& command,
                                             const std::string& image)
{
    Strings arguments;
    bool placed = false;
    for (std::string word : command) {
        for (std::size_t at = word.find(k_image); at != std::string::npos;
             at = word.find(k_image, at + image.size())) {
            word.replace(at, k_image.size(), image);
            placed = true;
        }
        arguments.push_back(std::move(word));
    }
    if (!placed) {
        arguments.push_back(image);
    }
    return arguments;
}

std::vector<std::string> program_argv(const Request& request)
{
    Strings arguments;
    for (const std::string& file : request.setup.sources) {
        append(arguments, bash(k_source_wrapper, {file}));
    }
    append(arguments, module_arguments(request.setup.modules));
    append(arguments, conda_arguments(request.setup.conda));
    append(arguments, venv_arguments(request.setup.venv));
    if (request.setup.container) {
        const Strings& command = request.setup.container_command;
        append(arguments,
               container_arguments(command.empty() ? default_container_command() : command,
                                   *request.setup.container));
    }
    append(arguments, request.program);
    return arguments;
}

} // namespace gpuq
