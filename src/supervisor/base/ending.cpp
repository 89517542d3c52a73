// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/ending.h"

#include "core/exit_status.h"
#include "ports/job.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <sys/wait.h>

namespace gpuq::supervisor {
namespace {

constexpr int k_signalled = 128;

int status_of(int wait_status)
{
    return WIFSIGNALED(wait_status) ? k_signalled + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

int status_when(Cause cause, int own, bool signalled)
{
    switch (cause) {
    case Cause::stopped:
    case Cause::cancelled:
        return static_cast<int>(ExitStatus::stopped);
    case Cause::time_limit:
        // A program that saves and exits in time keeps its own status.
        return signalled ? static_cast<int>(ExitStatus::time_limit) : own;
    case Cause::node_failed:
    case Cause::preempted:
    case Cause::lost:
        return static_cast<int>(ExitStatus::lost);
    case Cause::memory:
        return k_signalled + SIGKILL;
    case Cause::finished:
    case Cause::crashed:
    case Cause::gpu_memory:
    case Cause::not_started:
    case Cause::input_lost:
        break;
    }
    return static_cast<int>(ExitStatus::internal);
}

/// True if the kernel's KILL hit the program itself, or a process that its shell started and waited
/// for.
bool died_for_memory(const Observed& observed, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return WTERMSIG(wait_status) == SIGKILL &&
               (observed.memory.ours > 0 || observed.memory.nearby > 0);
    }
    return WEXITSTATUS(wait_status) == k_signalled + SIGKILL && observed.memory.ours > 0;
}

std::string joined(const std::string& one, const std::string& other)
{
    return one + (one.empty() || other.empty() ? "" : "; ") + other;
}

} // namespace

std::string to_sentence(const MemoryKills& kills)
{
    if (kills.ours > 0) {
        return fmt::format("the kernel killed {} of its processes for memory", kills.ours);
    }
    if (kills.nearby > 0) {
        return fmt::format(
            "the kernel killed {} {} on its node for memory, possibly not of this run",
            kills.nearby, kills.nearby == 1 ? "process" : "processes");
    }
    return "";
}

Ending decide(const Observed& observed, Time at)
{
    if (observed.not_started) {
        return {observed.not_started->status, Cause::not_started, observed.not_started->detail, at};
    }
    const int wait_status = observed.wait_status.value_or(0);
    const bool signalled = observed.wait_status && WIFSIGNALED(wait_status);
    const int own = status_of(wait_status);
    if (observed.termination) {
        const Termination& termination = *observed.termination;
        return {status_when(termination.cause, own, signalled), termination.cause,
                termination.detail, at};
    }
    if (!observed.wait_status) {
        return {static_cast<int>(ExitStatus::lost), Cause::lost,
                "the end of the program was not observed", at};
    }
    if (signalled && WTERMSIG(wait_status) == SIGTERM && observed.grace) {
        return {status_when(Cause::preempted, own, signalled), Cause::preempted,
                observed.grace->detail, at};
    }
    if (died_for_memory(observed, wait_status)) {
        return {
            own, Cause::memory,
            joined("the kernel killed the program: the job's memory was used up", observed.rank),
            at};
    }
    if (own != 0 && observed.gpu_out_of_memory) {
        return {own, Cause::gpu_memory, "the program reported that the GPU's memory was used up",
                at};
    }
    if (signalled) {
        const int signal = WTERMSIG(wait_status);
        const bool asked_for = observed.asked_signals.test(static_cast<std::size_t>(signal));
        return {own, Cause::crashed,
                joined(joined(asked_for ? "sent by its client" : strsignal(signal), observed.rank),
                       to_sentence(observed.memory)),
                at};
    }
    const std::string first = observed.rank.empty() ? "" : observed.rank + " ended first";
    return {own, Cause::finished, joined(first, to_sentence(observed.memory)), at};
}

std::optional<Termination> why_terminated(JobState state)
{
    switch (state) {
    case JobState::timeout:
    case JobState::deadline:
        return Termination{Cause::time_limit, ""};
    case JobState::node_fail:
    case JobState::boot_fail:
        return Termination{Cause::node_failed, "Slurm took the node out of service"};
    case JobState::preempted:
        return Termination{Cause::preempted, "a job of higher priority took its place"};
    case JobState::out_of_memory:
        return Termination{Cause::memory, "Slurm ended the job: its memory was used up"};
    case JobState::pending:
    case JobState::running:
    case JobState::suspended:
        return std::nullopt;
    case JobState::completing:
    case JobState::completed:
    case JobState::failed:
    case JobState::cancelled:
    case JobState::unknown:
        break;
    }
    return Termination{Cause::cancelled, "the job was cancelled in Slurm"};
}

} // namespace gpuq::supervisor
