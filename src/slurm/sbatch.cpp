// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sbatch.h"

#include "core/job_variables.h"
#include "log/log.h"
#include "ports/job.h"
#include "slurm/errors.h"
#include "slurm/job_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

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
bool means_unreachable(std::string_view message)
{
    constexpr std::string_view k_signs[] = {"Unable to contact", "Socket timed out",
                                            "Zero Bytes were transmitted", "Connection refused",
                                            "communication failure"};
    return std::any_of(std::begin(k_signs), std::end(k_signs), [&](std::string_view sign) {
        return message.find(sign) != std::string_view::npos;
    });
}

} // namespace

Result<JobId> job_in_answer(const Finished& sbatch)
{
    for (std::string_view rest = sbatch.out; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        if (const JobId id = id_in(rest.substr(0, end)); id.value != 0) {
            return id;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const std::string message = tidy(sbatch.out);
    const bool failed = sbatch.status != 0 && sbatch.signal == 0;
    if (!failed || means_unreachable(message)) {
        return fail(Error::Kind::unreachable, fmt::format("sbatch gave no answer: {}", message));
    }
    return fail(Error::Kind::denied, fmt::format("sbatch did not take the job: {}",
                                                 policy_message(message).value_or(message)));
}

Result<JobId> submit_by_sbatch(const JobSpec& spec, const std::string& script,
                               const std::vector<std::string>& environment)
{
    TRY_ASSIGN(const Descriptor input, file_in_memory(script));
    TRY_ASSIGN(const Finished finished,
               run({.argv = command(spec),
                    .environment = variables_for_job(environment),
                    .descriptors = {input.get(), Subprocess::k_null, Subprocess::k_null}}));
    if (finished.error != 0) {
        return fail(Error::Kind::usage, fmt::format("can't execute sbatch, which --slurm needs: {}",
                                                    std::strerror(finished.error)));
    }
    return job_in_answer(finished);
}

} // namespace gpuq::slurm
