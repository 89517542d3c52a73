// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/host.h"

#include "io/subprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr std::size_t k_most_output = 64 << 10;

Error not_started(const std::string& program, int error)
{
    return fail(Error::Kind::io, fmt::format("can't start {}: {}", program, std::strerror(error)));
}

/// Starts a program and waits until it is executed.
Result<pid_t> start(const std::vector<std::string>& argv, const std::vector<int>& streams)
{
    TRY_ASSIGN(Spawned process, spawn({.argv = argv, .descriptors = streams}));
    if (const auto failure = failure_of(process)) {
        (void)wait_for(process.pid);
        return not_started(argv[0], failure->error);
    }
    return process.pid;
}

/// This process's environment; variables of these names are replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& variables)
{
    std::vector<std::string> all = variables;
    const auto name_of = [](std::string_view text) { return text.substr(0, text.find('=')); };
    for (char** each = ::environ; each != nullptr && *each != nullptr; ++each) {
        const bool is_replaced =
            std::any_of(variables.begin(), variables.end(),
                        [&](const std::string& one) { return name_of(one) == name_of(*each); });
        if (!is_replaced) {
            all.emplace_back(*each);
        }
    }
    return all;
}

} // namespace

Result<Host::Ended> PosixHost::run(const std::vector<std::string>& argv, Heard heard)
{
    Capture capture{.streams = Capture::Streams::together, .most = k_most_output};
    if (heard == Heard::output) {
        capture.streams = Capture::Streams::output;
    }
    TRY_ASSIGN(Finished finished, gpuq::run({.argv = argv}, capture));
    if (finished.error != 0) {
        return not_started(argv[0], finished.error);
    }
    return Ended{finished.status, std::move(finished.out)};
}

Result<void> PosixHost::leave_running(const std::vector<std::string>& argv)
{
    TRY(spawn({.argv = argv, .work_dir = "/", .group = Subprocess::Group::session}));
    return {};
}

Result<void> PosixHost::leave_running(const std::vector<std::string>& argv,
                                      const std::vector<std::string>& variables,
                                      std::chrono::seconds limit)
{
    return spawn_unattended(
        {.argv = argv, .environment = environment_with(variables), .work_dir = "/"}, limit);
}

Result<int> PosixHost::run_here(const std::vector<std::string>& argv,
                                const std::vector<std::string>& pager)
{
    if (pager.empty()) {
        TRY_ASSIGN(const pid_t child, start(argv, {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}));
        return wait_for(child);
    }
    TRY_ASSIGN(Pipe pipe, make_pipe());
    TRY_ASSIGN(const pid_t reading, start(pager, {pipe.read.get(), STDOUT_FILENO, STDERR_FILENO}));
    const auto writing = start(argv, {Subprocess::k_null, pipe.write.get(), pipe.write.get()});
    pipe = Pipe{};
    const int status = wait_for(reading);
    if (!writing) {
        return writing.error();
    }
    (void)wait_for(*writing);
    return status;
}

} // namespace gpuq
