// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/ending_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <iterator>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

std::string signal_name(int number)
{
    // sigabbrev_np(3) requires glibc 2.32; Enterprise Linux 8 has 2.28.
    constexpr std::pair<int, const char*> k_names[] = {
        {SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"},     {SIGILL, "ILL"},
        {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},       {SIGFPE, "FPE"},
        {SIGKILL, "KILL"}, {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"},
        {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},     {SIGSTKFLT, "STKFLT"},
        {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"}, {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"},
        {SIGIO, "POLL"},   {SIGPWR, "PWR"},   {SIGSYS, "SYS"},
    };
    const auto* const found = std::find_if(std::begin(k_names), std::end(k_names),
                                           [&](const auto& name) { return name.first == number; });
    return found == std::end(k_names) ? fmt::format("signal {}", number)
                                      : fmt::format("signal {} (SIG{})", number, found->second);
}

std::tm local(Time at)
{
    const std::time_t seconds = std::chrono::system_clock::to_time_t(
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(at));
    std::tm parts = {};
    localtime_r(&seconds, &parts);
    return parts;
}

bool is_same_day(const std::tm& one, const std::tm& other)
{
    return one.tm_year == other.tm_year && one.tm_yday == other.tm_yday;
}

std::string with_detail(std::string sentence, const Ending& ending)
{
    if (ending.detail.empty()) {
        return sentence;
    }
    const bool continues = ending.detail.starts_with("by "); // was stopped by ada@login1
    return fmt::format("{}{}{}", sentence, continues ? " " : ": ", ending.detail);
}

/// A time as -t accepts it.
std::string option_text(std::chrono::minutes time)
{
    const auto hours = std::chrono::duration_cast<std::chrono::hours>(time);
    return hours == time ? fmt::format("{}h", hours.count()) : fmt::format("{}m", time.count());
}

/// The command that may help after such an end, if there is one.
std::optional<std::string> advice(const Request& request, Cause cause)
{
    switch (cause) {
    case Cause::time_limit:
        return "for more time: the same with -t " + option_text(2 * request.walltime);
    case Cause::memory:
        return "for more memory: the same with --mem SIZE";
    case Cause::gpu_memory:
        return "a smaller batch helps, or a GPU with more memory: the same with -g 32G+";
    case Cause::node_failed:
    case Cause::preempted:
    case Cause::lost:
        return "the program is not at fault: the same command starts it again";
    default:
        return std::nullopt;
    }
}

} // namespace

std::string describe(std::chrono::seconds duration)
{
    using std::chrono::days;
    struct Unit {
        std::chrono::seconds size;
        const char* one;
        const char* many;
    };
    static constexpr std::array<Unit, 4> units = {
        {{days{1}, "day", "days"}, {1h, "h", "h"}, {1min, "min", "min"}, {1s, "s", "s"}}};
    for (std::size_t i = 0; i < units.size(); ++i) {
        const auto count = duration / units[i].size;
        if (count == 0) {
            continue;
        }
        std::string text = fmt::format("{} {}", count, count == 1 ? units[i].one : units[i].many);
        if (i + 1 < units.size()) {
            const auto rest = (duration % units[i].size) / units[i + 1].size;
            if (rest > 0) {
                text +=
                    fmt::format(" {} {}", rest, rest == 1 ? units[i + 1].one : units[i + 1].many);
            }
        }
        return text;
    }
    return "0 s";
}

std::string clock_text(Time at, Time now)
{
    const std::tm then = local(at);
    const std::tm today = local(now);
    return is_same_day(then, today) ? fmt::format("{:%H:%M}", then)
                                    : fmt::format("{:%Y-%m-%d %H:%M}", then);
}

std::string short_clock_text(Time at, Time now)
{
    constexpr auto k_half_a_year = std::chrono::days{182};
    const std::tm then = local(at);
    return is_same_day(then, local(now)) ? fmt::format("{:%H:%M}", then)
           : at - now < k_half_a_year && now - at < k_half_a_year
               ? fmt::format("{:%m-%d %H:%M}", then)
               : fmt::format("{:%Y-%m-%d}", then);
}

std::string moment_text(Time at, Time now)
{
    const std::tm then = local(at);
    return is_same_day(then, local(now)) ? fmt::format("{:%H:%M:%S}", then) : full_moment_text(at);
}

std::string full_moment_text(Time at)
{
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", local(at));
}

std::string short_moment_text(Time at)
{
    return fmt::format("{:%m-%d %H:%M:%S}", local(at));
}

bool is_failure(const Ending& ending)
{
    const bool succeeded = ending.cause == Cause::finished && ending.status == 0;
    return !succeeded && ending.cause != Cause::stopped && ending.cause != Cause::cancelled;
}

bool was_released(const Ending& ending)
{
    return ending.cause == Cause::stopped && ending.detail.starts_with("released: ");
}

std::string ending_text(const Ending& ending, const Request& request)
{
    switch (ending.cause) {
    case Cause::finished:
        return with_detail(fmt::format("ended with status {}", ending.status), ending);
    case Cause::crashed:
        return with_detail("was killed by " + signal_name(ending.status - 128), ending);
    case Cause::time_limit:
        if (request.chain) { // its detail names the limit
            return ending.detail.empty() ? "reached the end of its link"
                                         : "reached its limit: " + ending.detail;
        }
        // Its detail is the limit if that was changed after the start.
        return "reached its time limit of " +
               (ending.detail.empty() ? describe(request.walltime) : ending.detail);
    case Cause::memory:
        return with_detail("was killed for using too much memory", ending);
    case Cause::gpu_memory:
        return fmt::format("ended with status {}: the GPU's memory was exhausted", ending.status);
    case Cause::node_failed:
        return with_detail("was lost: its node failed", ending);
    case Cause::preempted:
        return with_detail("was preempted by a job with higher priority", ending);
    case Cause::stopped:
        if (was_released(ending)) {
            return "was " + ending.detail;
        }
        return with_detail("was stopped", ending);
    case Cause::cancelled:
        return with_detail("was cancelled", ending);
    case Cause::not_started:
        return with_detail("could not be started", ending);
    case Cause::input_lost:
        return with_detail("was ended: its piped input was cut off", ending);
    case Cause::lost:
        return with_detail("was lost", ending);
    }
    return "ended";
}

std::vector<std::string> farewell(const Run& run, JobId job, const Ending& ending,
                                  std::string_view last_lines)
{
    if (ending.cause == Cause::finished && ending.status == 0 && ending.detail.empty()) {
        return {};
    }
    std::vector<std::string> lines = {fmt::format("run {} ({}) {}", job.value, run.request.name,
                                                  ending_text(ending, run.request))};
    const bool killed = ending.cause != Cause::finished && ending.cause != Cause::not_started;
    while (killed && !last_lines.empty()) {
        const std::size_t end = last_lines.find('\n');
        lines.push_back(fmt::format("  | {}", last_lines.substr(0, end)));
        last_lines.remove_prefix(end == std::string_view::npos ? last_lines.size() : end + 1);
    }
    if (run.request.chain && ending.cause != Cause::not_started) {
        const bool out_of_time = ending.cause == Cause::time_limit;
        lines.push_back(fmt::format("to resume from its last checkpoint: gpuq resume {}{}",
                                    out_of_time ? "-t TIME " : "", job.value));
    } else if (const auto help = advice(run.request, ending.cause)) {
        lines.push_back(*help);
    }
    if (ending.cause != Cause::not_started) {
        lines.push_back(fmt::format("the whole log: gpuq logs {}", job.value));
    }
    return lines;
}

} // namespace gpuq
