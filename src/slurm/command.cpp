// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/command.h"

#include "core/job_variables.h"
#include "io/subprocess.h"
#include "log/log.h"
#include "slurm/job_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

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

} // namespace

Result<CommandAnswer> run_command(std::vector<std::string> arguments,
                                  std::chrono::milliseconds limit,
                                  const std::function<bool(const CommandAnswer&)>& enough,
                                  const std::vector<std::string>& variables)
{
    log::Timer timer(log::Part::slurm, fmt::format("{}", fmt::join(arguments, " ")));
    Capture capture{.streams = Capture::Streams::apart, .limit = limit};
    if (enough) {
        capture.enough = [&](const std::string& out, const std::string& err) {
            return enough({0, out, err});
        };
    }
    const std::string name = arguments[0];
    TRY_ASSIGN(Finished finished, run({.argv = std::move(arguments),
                                       .environment = environment_of_commands(variables),
                                       .group = Subprocess::Group::own},
                                      capture));
    if (finished.error != 0) {
        return fail(Error::Kind::not_found,
                    fmt::format("can't execute {}: {}", name, std::strerror(finished.error)));
    }
    timer.outcome(finished.in_time ? fmt::format("status {}", finished.status)
                                   : "no answer in time");
    if (!finished.in_time) {
        return fail(Error::Kind::unreachable,
                    fmt::format("{} gave no answer in {} s", name, limit.count() / 1000));
    }
    return CommandAnswer{finished.status, std::move(finished.out), std::move(finished.err)};
}

} // namespace gpuq::slurm
