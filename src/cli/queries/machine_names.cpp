// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/machine_names.h"

#include "core/strings.h"
#include "ports/host.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr std::size_t k_most_names = 2000;
/// Below a directory of MODULEPATH: `compiler/gcc/12`.
constexpr int k_deepest_module = 3;

Strings variable_as_list(Services& services, const std::string& name)
{
    const std::string value = services.variable(name).value_or("");
    Strings paths;
    for (const std::string_view path : split(value, ":")) {
        if (!path.empty()) {
            paths.emplace_back(path);
        }
    }
    return paths;
}

/// The directory of conda's own environments: `envs` beside its `bin` or `condabin`.
fs::path environments_of_conda(Services& services)
{
    const auto program = services.variable("CONDA_EXE");
    const auto found = program ? program : services.host().program("conda");
    std::error_code failed;
    const fs::path resolved = found ? fs::canonical(*found, failed) : fs::path();
    return resolved.empty() ? fs::path() : resolved.parent_path().parent_path() / "envs";
}

bool is_environment(const fs::path& path)
{
    std::error_code failed;
    return fs::is_directory(path / "conda-meta", failed);
}

void add_environments_in(Strings& names, const fs::path& directory)
{
    std::error_code failed;
    for (fs::directory_iterator entries(directory, failed);
         !failed && entries != fs::directory_iterator() && names.size() < k_most_names;
         entries.increment(failed)) {
        if (is_environment(entries->path())) {
            names.push_back(entries->path().filename());
        }
    }
}

/// A module file `12.4.lua` is called `12.4`; hidden files such as `.version` are none.
void add_modules_in(Strings& names, const fs::path& directory, const std::string& prefix, int depth)
{
    std::error_code failed;
    for (fs::directory_iterator entries(directory, failed);
         !failed && entries != fs::directory_iterator() && names.size() < k_most_names;
         entries.increment(failed)) {
        std::string name = entries->path().filename();
        if (name.starts_with('.')) {
            continue;
        }
        std::error_code unknown;
        const bool is_directory = entries->is_directory(unknown);
        if (!is_directory && name.ends_with(".lua")) {
            name.erase(name.size() - std::string_view(".lua").size());
        }
        names.push_back(prefix + name);
        if (is_directory && depth < k_deepest_module) {
            add_modules_in(names, entries->path(), prefix + name + "/", depth + 1);
        }
    }
}

} // namespace

Strings paths_beginning_with(const std::string& beginning, std::size_t most)
{
    const std::size_t slash = beginning.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : beginning.substr(0, slash + 1);
    const std::string name = beginning.substr(directory.size());
    Strings paths;
    std::error_code failed;
    fs::directory_iterator entries(directory.empty() ? "." : directory, failed);
    for (; !failed && entries != fs::directory_iterator() && paths.size() < most;
         entries.increment(failed)) {
        const std::string found = entries->path().filename().string();
        if (found.starts_with(name) && (name.starts_with('.') || !found.starts_with('.'))) {
            std::error_code unknown;
            paths.push_back(directory + found + (entries->is_directory(unknown) ? "/" : ""));
        }
    }
    return paths;
}

Strings conda_environments(Services& services)
{
    const fs::path home = services.variable("HOME").value_or("");
    Strings names{"base"};
    for (const char* const variable : {"CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"}) {
        for (const std::string& directory : variable_as_list(services, variable)) {
            add_environments_in(names, directory);
        }
    }
    add_environments_in(names, environments_of_conda(services));
    add_environments_in(names, home / ".conda/envs");
    std::ifstream noted(home / ".conda/environments.txt");
    for (std::string path; std::getline(noted, path) && names.size() < k_most_names;) {
        if (fs::path(path).parent_path().filename() != "envs" && is_environment(path)) {
            names.push_back(path);
        }
    }
    return names;
}

Strings environment_modules(Services& services)
{
    Strings names;
    for (const std::string& directory : variable_as_list(services, "MODULEPATH")) {
        add_modules_in(names, directory, "", 1);
    }
    return names;
}

} // namespace gpuq::cli
