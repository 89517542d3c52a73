// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/command.h"

#include "core/job_variables.h"
#include "core/words.h"
#include "io/descriptor.h"
#include "log/log.h"
#include "slurm/job_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

using Clock = std::chrono::steady_clock;

bool is_set_by(const std::string& variable, const std::vector<std::string>& variables)
{
    const std::string_view name(variable.data(), variable.find('=') + 1);
    return std::any_of(variables.begin(), variables.end(),
                       [&](const std::string& one) { return one.starts_with(name); });
}

/// Environment variables that act as options of Slurm's commands.
bool is_an_option(const std::string& variable)
{
    constexpr std::string_view k_prefixes[] = {"SBATCH_", "SALLOC_",  "SQUEUE_",  "SINFO_",
                                               "SACCT_",  "SCANCEL_", "SCONTROL_"};
    return std::any_of(std::begin(k_prefixes), std::end(k_prefixes),
                       [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

/// The environment without those, and with a fixed locale, so that Slurm's messages do not vary.
std::vector<std::string> environment_of_commands(const std::vector<std::string>& variables_of_ours)
{
    std::vector<std::string> variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        variables.emplace_back(*entry);
    }
    std::vector<std::string> kept = variables_for_job(variables);
    std::erase_if(kept, [&](const std::string& variable) {
        return is_set_by(variable, variables_of_ours) || is_an_option(variable) ||
               variable.starts_with("SLURM_CONF=") || variable.starts_with("LC_ALL=");
    });
    if (const char* const conf = std::getenv("SLURM_CONF")) {
        kept.push_back(fmt::format("SLURM_CONF={}", conf));
    }
    kept.emplace_back("LC_ALL=C.UTF-8");
    kept.insert(kept.end(), variables_of_ours.begin(), variables_of_ours.end());
    return kept;
}

Result<pid_t> start(std::vector<std::string>& words, const Pipe& out, const Pipe& err,
                    const std::vector<std::string>& variables_of_ours)
{
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); // to be killed as a group
    std::vector<std::string> variables = environment_of_commands(variables_of_ours);
    pid_t child = 0;
    const int refused = ::posix_spawnp(&child, words[0].c_str(), &actions, &attributes,
                                       pointers(words).data(), pointers(variables).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (refused != 0) {
        return fail(Error::Kind::not_found,
                    fmt::format("can't execute {}: {}", words[0], std::strerror(refused)));
    }
    return child;
}

/// False at the end of the stream.
bool take(const Descriptor& reader, std::string& text)
{
    std::array<char, 16384> bytes{};
    const ssize_t size = ::read(reader.get(), bytes.data(), bytes.size());
    if (size > 0) {
        text.append(bytes.data(), static_cast<std::size_t>(size));
    }
    return size > 0 || (size < 0 && errno == EINTR);
}

int status_of(pid_t child)
{
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// True if both streams have ended, or if the output is `enough`.
bool collect(Descriptor& out, Descriptor& err, CommandAnswer& answer, Clock::time_point end,
             const std::function<bool(const CommandAnswer&)>& enough)
{
    while (out || err) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        std::array<pollfd, 2> waiting{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
        if (left <= 0 || ::poll(waiting.data(), 2, static_cast<int>(left)) == 0) {
            return false;
        }
        if (waiting[0].revents != 0 && !take(out, answer.out)) {
            out.reset();
        }
        if (waiting[1].revents != 0 && !take(err, answer.err)) {
            err.reset();
        }
        if (enough && enough(answer)) {
            return true;
        }
    }
    return true;
}

} // namespace

Result<CommandAnswer> run_command(std::vector<std::string> words, std::chrono::milliseconds limit,
                                  const std::function<bool(const CommandAnswer&)>& enough,
                                  const std::vector<std::string>& variables)
{
    log::Timer timer(log::Part::slurm, fmt::format("{}", fmt::join(words, " ")));
    TRY_ASSIGN(Pipe out, make_pipe());
    TRY_ASSIGN(Pipe err, make_pipe());
    TRY_ASSIGN(const pid_t child, start(words, out, err, variables));
    out.write.reset();
    err.write.reset();
    CommandAnswer answer;
    const bool done = collect(out.read, err.read, answer, Clock::now() + limit, enough);
    if (!done || enough) {
        ::kill(-child, SIGKILL);
    }
    answer.status = status_of(child);
    timer.outcome(done ? fmt::format("status {}", answer.status) : "no answer in time");
    if (!done) {
        return fail(Error::Kind::unreachable,
                    fmt::format("{} gave no answer in {} s", words[0], limit.count() / 1000));
    }
    return answer;
}

} // namespace gpuq::slurm
