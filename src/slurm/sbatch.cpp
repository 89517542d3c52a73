// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sbatch.h"

#include "core/job_variables.h"
#include "core/words.h"
#include "io/descriptor.h"
#include "log/log.h"
#include "slurm/errors.h"
#include "slurm/job_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

std::vector<std::string> command(const JobSpec& spec)
{
    const std::string output = spec.output.empty() ? "/dev/null" : literal_file_name(spec.output);
    return {"sbatch",
            "--parsable",
            "--no-requeue",
            "--kill-on-invalid-dep=yes",
            "--open-mode=append",
            "--propagate=NONE",
            fmt::format("--comment={}", spec.comment),
            fmt::format("--chdir={}", spec.work_dir),
            fmt::format("--output={}", output)};
}

Error io_error(std::string_view what)
{
    return fail(Error::Kind::io, fmt::format("can't {}: {}", what, std::strerror(errno)));
}

/// An in-memory file with the script, as standard input of sbatch.
Result<Descriptor> as_file(const std::string& script)
{
    Descriptor file(::memfd_create("gpuq-script", MFD_CLOEXEC));
    const auto size = static_cast<ssize_t>(script.size());
    if (file.get() < 0 || ::write(file.get(), script.data(), script.size()) != size ||
        ::lseek(file.get(), 0, SEEK_SET) != 0) {
        return io_error("keep the script in memory");
    }
    return file;
}

class SpawnActions {
public:
    SpawnActions() { ::posix_spawn_file_actions_init(&m_actions); }
    ~SpawnActions() { ::posix_spawn_file_actions_destroy(&m_actions); }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
    void use(const Descriptor& file, int as)
    {
        ::posix_spawn_file_actions_adddup2(&m_actions, file.get(), as);
    }
    const posix_spawn_file_actions_t* get() const { return &m_actions; }

private:
    posix_spawn_file_actions_t m_actions{};
};

std::string read_all(const Descriptor& file)
{
    std::string all;
    std::array<char, 4096> bytes{};
    while (true) {
        const ssize_t size = ::read(file.get(), bytes.data(), bytes.size());
        if (size > 0) {
            all.append(bytes.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            return all;
        }
    }
}

int status_of(pid_t child)
{
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// `42` or `42;cluster`, as --parsable prints it; 0 for any other line.
JobId id_in(std::string_view line)
{
    JobId id;
    line = line.substr(0, line.find(';'));
    const char* const end = line.data() + line.size();
    const auto [rest, error] = std::from_chars(line.data(), end, id.value);
    return error == std::errc() && rest == end ? id : JobId{};
}

/// sbatch reports this only by its message, not by its exit status.
bool says_unreachable(std::string_view words)
{
    constexpr std::string_view k_signs[] = {"Unable to contact", "Socket timed out",
                                            "Zero Bytes were transmitted", "Connection refused",
                                            "communication failure"};
    return std::any_of(std::begin(k_signs), std::end(k_signs), [&](std::string_view sign) {
        return words.find(sign) != std::string_view::npos;
    });
}

} // namespace

Result<JobId> job_in_answer(std::string_view printed, int wait_status)
{
    for (std::string_view rest = printed; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        if (const JobId id = id_in(rest.substr(0, end)); id.value != 0) {
            return id;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const std::string words = tidy(printed);
    const bool failed = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0;
    if (!failed || says_unreachable(words)) {
        return fail(Error::Kind::unreachable, fmt::format("sbatch gave no answer: {}", words));
    }
    return fail(Error::Kind::denied, fmt::format("sbatch did not take the job: {}",
                                                 words_of_policy(words).value_or(words)));
}

Result<JobId> submit_by_sbatch(const JobSpec& spec, const std::string& script,
                               const std::vector<std::string>& environment)
{
    TRY_ASSIGN(const Descriptor input, as_file(script));
    TRY_ASSIGN(Pipe pipe, make_pipe());
    const Descriptor answer = std::move(pipe.read);
    Descriptor output = std::move(pipe.write);
    SpawnActions actions;
    actions.use(input, STDIN_FILENO);
    actions.use(output, STDOUT_FILENO);
    actions.use(output, STDERR_FILENO);
    std::vector<std::string> words = command(spec);
    const log::Timer timer(log::Part::slurm, fmt::format("{}", fmt::join(words, " ")));
    std::vector<std::string> variables = variables_for_job(environment);
    pid_t child = 0;
    const int refused = ::posix_spawnp(&child, "sbatch", actions.get(), nullptr,
                                       pointers(words).data(), pointers(variables).data());
    output.reset();
    if (refused != 0) {
        return fail(Error::Kind::usage, fmt::format("can't execute sbatch, which --slurm needs: {}",
                                                    std::strerror(refused)));
    }
    const std::string printed = read_all(answer);
    return job_in_answer(printed, status_of(child));
}

} // namespace gpuq::slurm
