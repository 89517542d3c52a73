// SPDX-License-Identifier: GPL-2.0-or-later
// Makes one call to the adapter for tests/live/test_slurm.py. Prints the result on stdout and
// nothing else.
//
//   slurm_probe start PARTITION GPUS COMMENT STEP...     job ID, then the step's output
//   slurm_probe submit PARTITION GPUS COMMENT SCRIPT     job ID
//   slurm_probe own COMMENT                              ID and `over` or `alive`, one job per line
//   slurm_probe complete ID STATUS | cancel ID | past ID | failures
#include "slurm/cluster.h"

#include "contract/accounting_program.h"
#include "ports/accounting.h"
#include "ports/cluster.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

namespace gpuq {
namespace {

using Strings = std::vector<std::string>;

void print_message(const std::string& text)
{
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

int give_up(const Error& error)
{
    print_message(
        fmt::format("error {} {}\n", static_cast<int>(exit_status_of(error.kind)), error.text));
    return error.kind == Error::Kind::busy ? 75 : static_cast<int>(exit_status_of(error.kind));
}

JobSpec spec_of(const Strings& arguments)
{
    JobSpec spec;
    spec.name = "probe";
    spec.partition = arguments.at(1);
    spec.gpus_per_node = std::stoi(arguments.at(2));
    spec.comment = arguments.at(3);
    spec.work_dir = "/tmp";
    spec.walltime = std::chrono::minutes(5);
    return spec;
}

JobId id_of(const std::string& word)
{
    return JobId{static_cast<std::uint32_t>(std::stoul(word))};
}

int start(Cluster& cluster, const Strings& arguments)
{
    const auto started =
        cluster.start_now(spec_of(arguments), Strings(arguments.begin() + 4, arguments.end()),
                          /*with_input=*/false, {});
    if (!started) {
        return give_up(started.error());
    }
    print_message(fmt::format("job {}\n", started->job.value));
    std::array<char, 4096> bytes{};
    for (const int fd : {started->process.output, started->process.error}) {
        for (ssize_t size = 0; (size = ::read(fd, bytes.data(), bytes.size())) > 0;) {
            print_message(std::string(bytes.data(), static_cast<std::size_t>(size)));
        }
    }
    return 0;
}

int submit(Cluster& cluster, const Strings& arguments)
{
    const auto id = cluster.submit(spec_of(arguments), arguments.at(4), {"PATH=/usr/bin:/bin"});
    if (!id) {
        return give_up(id.error());
    }
    print_message(fmt::format("job {}\n", id->value));
    return 0;
}

int own(Cluster& cluster, const Strings& arguments)
{
    const auto jobs = cluster.own_jobs();
    if (!jobs) {
        return give_up(jobs.error());
    }
    for (const Job& job : *jobs) {
        if (job.comment == arguments.at(1)) {
            print_message(
                fmt::format("{} {}\n", job.id.value, is_over(job.state) ? "over" : "alive"));
        }
    }
    return 0;
}

int past(const Strings& arguments)
{
    auto accounting = SlurmAccounting::open({}, accounting_program());
    if (!accounting) {
        return give_up(accounting.error());
    }
    const auto job = (*accounting)->past_job(id_of(arguments.at(1)));
    if (!job) {
        return give_up(job.error());
    }
    print_message(fmt::format("status {} over {} by {}\n", job->exit_status, is_over(job->state),
                              job->cancelled_by ? std::to_string(*job->cancelled_by) : "nobody"));
    return 0;
}

/// Node failures of the last hour.
int failures()
{
    auto accounting = SlurmAccounting::open({}, accounting_program());
    if (!accounting) {
        return give_up(accounting.error());
    }
    const Time now = std::chrono::floor<Time::duration>(std::chrono::system_clock::now());
    const auto history = (*accounting)->node_failures(now - std::chrono::hours(1), now);
    if (!history) {
        return give_up(history.error());
    }
    print_message(fmt::format("since {}\n", (now - history->since) / std::chrono::seconds(1)));
    for (const NodeHistory::Failure& failure : history->failures) {
        print_message(
            fmt::format("{} {}\n", failure.node, (now - failure.at) / std::chrono::seconds(1)));
    }
    return 0;
}

int act(Cluster& cluster, const Strings& arguments)
{
    const auto done = arguments.at(0) == "cancel"
                          ? cluster.cancel(id_of(arguments.at(1)))
                          : cluster.complete(id_of(arguments.at(1)), std::stoi(arguments.at(2)));
    return done ? 0 : give_up(done.error());
}

int run(const Strings& arguments)
{
    auto cluster = SlurmCluster::open();
    if (!cluster) {
        return give_up(cluster.error());
    }
    const std::string& verb = arguments.at(0);
    if (verb == "start") {
        return start(**cluster, arguments);
    }
    if (verb == "submit") {
        return submit(**cluster, arguments);
    }
    if (verb == "own") {
        return own(**cluster, arguments);
    }
    if (verb == "failures") {
        return failures();
    }
    return verb == "past" ? past(arguments) : act(**cluster, arguments);
}

} // namespace
} // namespace gpuq

int main(int argc, char** argv)
{
    return gpuq::run(gpuq::Strings(argv + 1, argv + argc));
}
