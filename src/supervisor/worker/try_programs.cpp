// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/try_programs.h"

#include "core/layout.h"
#include "io/descriptor.h"
#include "io/subprocess.h"
#include "io/trusted_path.h"
#include "sweeps/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>

namespace gpuq::supervisor {
namespace {

using sweeps::TryTaker;

constexpr int k_directory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Opens sweeps/KEY/tries/N below the state directory, without following symbolic links.
Result<Descriptor> open_try(const std::string& root, const std::string& directory)
{
    TRY_ASSIGN(Descriptor at, open_trusted_directory(root));
    std::string_view rest = directory;
    while (at && !rest.empty()) {
        const auto end = std::min(rest.find('/'), rest.size());
        at = Descriptor(::openat(at.get(), std::string(rest.substr(0, end)).c_str(), k_directory));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return at ? Result<Descriptor>(std::move(at))
              : fail(Error::Kind::io, fmt::format("{}: {}", directory, error_text(errno)));
}

std::string with_checkpoint(std::string word, const std::string& path)
{
    for (std::size_t at = word.find("{}"); at != std::string::npos;
         at = word.find("{}", at + path.size())) {
        word.replace(at, 2, path);
    }
    return word;
}

} // namespace

std::optional<checkpoint::Found> TryPrograms::newest_checkpoint(const TryTaker::Taken& taken) const
{
    const checkpoint::Place place = place_of(taken);
    // Formats without an end mark count once two calls have seen them unchanged.
    auto found = checkpoint::find_checkpoints(place, {});
    found = found ? checkpoint::find_checkpoints(place, *found) : std::move(found);
    const auto* const newest = found ? checkpoint::newest_whole(*found) : nullptr;
    return newest == nullptr ? std::nullopt : std::optional(*newest);
}

Request TryPrograms::request_of(const TryTaker::Taken& taken, const std::string& resume) const
{
    Request request = m_sweep.run.request;
    // The worker itself already runs in the environment; a container has no gpuq-supervisor.
    request.setup = request.setup.inside();
    request.program = sweeps::arguments_of_try(request.program, m_sweep.parameters, taken.values);
    if (!resume.empty() && request.chain) {
        for (const std::string& word : request.chain->resume_args) {
            request.program.push_back(with_checkpoint(word, resume));
        }
    }
    return request;
}

checkpoint::Place TryPrograms::place_of(const TryTaker::Taken& taken) const
{
    const auto& chain = m_sweep.run.request.chain;
    if (chain && !chain->checkpoint.empty()) {
        return {m_sweep.run.request.work_dir,
                sweeps::arguments_of_try({chain->checkpoint}, m_sweep.parameters, taken.values)
                    .front()};
    }
    return {checkpoint_dir(taken.number), "*"};
}

std::string TryPrograms::checkpoint_dir(std::size_t number) const
{
    return fmt::format("{}/{}/checkpoints", m_store.root(), layout::try_dir(m_plan.sweep, number));
}

EventWriter TryPrograms::event_writer(std::size_t number, pid_t pid, Time since) const
{
    return {checkpoint_dir(number), run_id(number), pid, since};
}

std::string TryPrograms::run_id(std::size_t number) const
{
    return fmt::format("{}-{}", m_plan.sweep.text(), number);
}

Result<TryPrograms::Started> TryPrograms::start(const TryTaker::Taken& taken,
                                                const std::string& resume, int port)
{
    const std::string directory = layout::try_dir(m_plan.sweep, taken.number);
    const Request request = request_of(taken, resume);
    TRY(m_store.make_dir(directory + "/checkpoints"));
    TRY(m_store.remove(layout::try_leave(m_plan.sweep, taken.number))); // of an earlier attempt
    TRY_ASSIGN(const Descriptor at, open_try(m_store.root(), directory));
    const Descriptor log(::openat(at.get(), "out.log",
                                  O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    struct stat status = {};
    if (!log || ::fstat(log.get(), &status) != 0) {
        return fail(Error::Kind::io, fmt::format("{}/out.log: {}", directory, error_text(errno)));
    }
    Environment variables = Environment::own();
    describe(variables, taken, resume);
    for (const char* name : {"MASTER_PORT", "PET_MASTER_PORT"}) {
        if (port > 0 && !is_set_by_user(name)) {
            variables.set(name, std::to_string(port));
        }
    }
    TRY_ASSIGN(Spawned program, spawn({.argv = m_plan.program_argv(request),
                                       .environment = variables.texts(),
                                       .search = Subprocess::Search::its_path,
                                       .work_dir = request.work_dir,
                                       .descriptors = {Subprocess::k_null, log.get(), log.get()},
                                       .group = Subprocess::Group::session,
                                       .death_signal = SIGKILL}));
    if (const auto failure = failure_of(program)) {
        (void)wait_for(program.pid);
        return fail(Error::Kind::not_executable,
                    fmt::format("{}: {}", request.program.front(), error_text(failure->error)));
    }
    return Started{program.pid, static_cast<std::uint64_t>(status.st_size)};
}

bool TryPrograms::is_set_by_user(std::string_view name) const
{
    const auto& env = m_sweep.run.request.setup.env;
    return std::any_of(env.begin(), env.end(),
                       [&](const auto& pair) { return pair.first == name; });
}

void TryPrograms::describe(Environment& variables, const TryTaker::Taken& taken,
                           const std::string& resume) const
{
    const std::string name = run_id(taken.number);
    for (const auto& [variable, value] :
         sweeps::variables_of_try(taken.number, m_sweep.parameters, taken.values)) {
        variables.set(variable, value);
    }
    variables.set("GPUQ_SWEEP", m_plan.sweep.text());
    variables.set("GPUQ_RUN_ID", name);
    variables.set("GPUQ_CHECKPOINT_DIR", checkpoint_dir(taken.number));
    variables.set("GPUQ_CAUSE", taken.attempt == 1 ? "first" : "timeout");
    variables.unset("GPUQ_SAVE_FILE"); // that of the worker
    if (m_sweep.stop_early) {
        variables.set("GPUQ_STOP_FILE", fmt::format("{}/{}", m_store.root(),
                                                    layout::try_leave(m_plan.sweep, taken.number)));
    }
    if (resume.empty()) {
        variables.unset("GPUQ_RESUME_FROM");
    } else {
        variables.set("GPUQ_RESUME_FROM", resume);
    }
    // The supervisor has set it for the run as a whole: every try would be the same W&B run.
    if (variables.value("WANDB_RUN_ID") == m_plan.self.worker.text()) {
        variables.set("WANDB_RUN_ID", name);
    }
}

} // namespace gpuq::supervisor
