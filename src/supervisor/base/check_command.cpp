// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/check_command.h"

#include "core/words.h"
#include "runs/environment.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_patience = 600s;

[[noreturn]] void execute(const std::vector<std::string>& words, const std::string& work_dir)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(null, fd);
    }
    const std::vector<char*> argv = pointers(words);
    if (::chdir(work_dir.c_str()) == 0) {
        ::execvp(argv[0], argv.data());
    }
    ::_exit(127);
}

} // namespace

std::vector<std::string> with_path(const std::vector<std::string>& words, const std::string& path)
{
    std::vector<std::string> result;
    for (std::string word : words) {
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
    const std::vector<std::string> words = program_argv(checked);
    const pid_t child = ::fork();
    if (child == 0) {
        execute(words, run.request.work_dir);
    }
    const auto until = std::chrono::steady_clock::now() + k_patience;
    int status = -1;
    while (child > 0 && ::waitpid(child, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > until) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
            return false;
        }
        ::poll(nullptr, 0, 20);
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace gpuq::supervisor
