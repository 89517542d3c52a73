// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/check_command.h"

#include "io/subprocess.h"
#include "runs/records/environment.h"

#include <chrono>
#include <csignal>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_patience = 600s;

} // namespace

std::vector<std::string> with_path(const std::vector<std::string>& arguments,
                                   const std::string& path)
{
    std::vector<std::string> result;
    for (std::string word : arguments) {
        for (std::size_t at = 0; (at = word.find("{}", at)) != std::string::npos;
             at += path.size()) {
            word.replace(at, 2, path);
        }
        result.push_back(std::move(word));
    }
    return result;
}

bool passes_check(const std::vector<std::string>& command, const std::string& path, const Run& run)
{
    Request checked = run.request;
    checked.program = with_path(command, path);
    if (checked.program == command) { // no placeholder for the path
        checked.program.push_back(path);
    }
    const auto finished = gpuq::run({.argv = program_argv(checked),
                                     .work_dir = run.request.work_dir,
                                     .group = Subprocess::Group::own,
                                     .death_signal = SIGKILL},
                                    {.streams = Capture::Streams::none, .limit = k_patience});
    return finished && finished->in_time && finished->status == 0;
}

} // namespace gpuq::supervisor
