// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/sudo.h"

#include "io/subprocess.h"

#include <fmt/format.h>

#include <unistd.h>

namespace gpuq::cli {

Result<int> run_as(Services& services, const std::string& account,
                   const std::vector<std::string>& arguments, const std::string& page,
                   SudoOutput output)
{
    TRY_ASSIGN(const std::string gpuq, services.program());
    Subprocess plan{
        .argv = {"sudo", "-n", "-u", account, "--", gpuq},
        .descriptors = {Subprocess::k_null,
                        output == SudoOutput::shown ? STDOUT_FILENO : Subprocess::k_null,
                        STDERR_FILENO}};
    plan.argv.insert(plan.argv.end(), arguments.begin(), arguments.end());
    TRY_ASSIGN(const Finished done, run(std::move(plan), {.streams = Capture::Streams::none}));
    // sudo itself exits with 1, gpuq does not if it refuses something.
    if (done.status == 1 || done.error != 0) {
        return fail(
            Error::Kind::denied,
            fmt::format("sudo does not let you run gpuq as {}: the operators' sudoers lacks "
                        "the line of {}",
                        account, page));
    }
    return done.status;
}

} // namespace gpuq::cli
