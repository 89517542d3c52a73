// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/checks.h"

#include "cli/queries/node_check.h"
#include "embedded/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Level = Finding::Level;

/// Slurm's own timeout is ten seconds, and a query may be repeated.
constexpr auto k_patience = 25s;
constexpr auto k_patience_with_nodes = 60s;

/// A check, performed in a process of its own, and the names of its findings, which are reported as
/// unknown if it returns none.
struct Check {
    std::vector<std::string_view> names;
    std::function<std::vector<Finding>(Doors&)> work;
};

std::vector<Finding> check_configuration(Doors& doors)
{
    const auto settings = doors.settings();
    if (!settings) {
        return {{"configuration", Level::problem, settings.error().text,
                 "correct this setting; see FILES in man gpuq"}};
    }
    for (const char* name : {"XDG_CONFIG_HOME", "XDG_STATE_HOME"}) {
        const auto value = doors.variable(name);
        if (value && !value->empty() && !value->starts_with('/')) {
            return {{"configuration", Level::warning,
                     fmt::format("{} is not an absolute path and is ignored", name),
                     "set it to an absolute path, or unset it"}};
        }
    }
    return {{"configuration", Level::ok, "variables and files are valid", ""}};
}

std::vector<Finding> check_slurm(Doors& doors)
{
    const auto cluster = doors.cluster();
    if (!cluster) {
        return judge_silence(cluster.error());
    }
    Answered answered{
        (*cluster)->name().has_value() ? *(*cluster)->name() : "", 0ms, doors.clock().now(), {}};
    const auto begin = doors.clock().steady();
    const auto controller = (*cluster)->controller();
    answered.took =
        std::chrono::duration_cast<std::chrono::milliseconds>(doors.clock().steady() - begin);
    answered.after = doors.clock().now();
    return controller ? judge_controller(*controller, answered) : judge_silence(controller.error());
}

std::vector<Finding> check_accounting(Doors& doors)
{
    const auto cluster = doors.cluster();
    const auto controller =
        cluster ? (*cluster)->controller() : Result<Controller>(cluster.error());
    const auto accounting = doors.accounting();
    if (!controller || !accounting) {
        return {{"accounting", Level::unknown, "Slurm did not answer", ""}};
    }
    // Any job will do: a response that it does not exist is also a response.
    const auto conf = doors.variable("SLURM_CONF"); // set when the cluster was detected
    return {judge_accounting(controller->keeps_accounting, (*accounting)->past_job(JobId{1}),
                             conf ? embedded::accounting_failure(*conf) : std::nullopt)};
}

std::vector<Finding> unknown(const std::vector<std::string_view>& names, const std::string& why)
{
    std::vector<Finding> findings;
    for (const std::string_view name : names) {
        findings.push_back({std::string(name), Level::unknown, why, ""});
    }
    return findings;
}

const std::vector<std::string_view> k_queue_checks = {"queue", "nodes", "nodes-submit"};

std::vector<Finding> check_queues(Doors& doors)
{
    const auto cluster = doors.cluster();
    const auto queues =
        cluster ? (*cluster)->partitions() : Result<std::vector<Partition>>(cluster.error());
    const auto nodes = queues ? (*cluster)->nodes() : Result<std::vector<Node>>(queues.error());
    return nodes ? judge_queues(*queues, *nodes) : unknown(k_queue_checks, "Slurm did not answer");
}

std::vector<Finding> check_programs(Doors& doors)
{
    std::vector<Finding> findings;
    const auto srun = doors.host().program("srun");
    findings.push_back(srun ? Finding{"srun", Level::ok, *srun, ""}
                            : Finding{"srun", Level::problem, "srun is not in PATH",
                                      "add the directory of Slurm's programs to PATH"});
    const auto supervisor = doors.supervisor();
    findings.push_back(supervisor
                           ? Finding{"supervisor", Level::ok, *supervisor, ""}
                           : Finding{"supervisor", Level::problem, supervisor.error().text, ""});
    return findings;
}

std::vector<Finding> check_folder(Doors& doors)
{
    const auto path = doors.state_dir();
    if (!path) {
        return judge_folder("", path.error(), ::geteuid());
    }
    auto findings = judge_folder(*path, doors.host().folder(*path), ::geteuid());
    // Permissions do not show a full disk or a failing server: write a file.
    const bool promised = findings.front().level == Level::ok;
    const auto store = promised ? doors.store() : Result<Store*>(nullptr);
    if (!store) {
        findings.front() = {"state-folder", Level::problem, store.error().text,
                            "choose another directory with state_dir or GPUQ_STATE_DIR"};
    } else if (*store != nullptr) {
        const std::string file = fmt::format("probe-{}", ::getpid());
        const auto written = (*store)->write(file, "probe");
        (void)(*store)->remove(file);
        if (!written) {
            findings.front() = {"state-folder", Level::problem, written.error().text,
                                "free some space (gpuq clean), or choose another directory "
                                "with state_dir"};
        }
    }
    return findings;
}

std::vector<Check> checks(AskNodes nodes)
{
    std::vector<Check> all = {
        {{"configuration"}, check_configuration},
        {{"slurm", "version", "clock", "defer", "batch-sched-delay", "kill-wait", "inactive-limit",
          "memory-limit", "private-data"},
         check_slurm},
        {{"accounting"}, check_accounting},
        {k_queue_checks, check_queues},
        {{"srun", "supervisor"}, check_programs},
        {{"state-folder", "space", "nodes-see-folder"}, check_folder},
    };
    if (nodes == AskNodes::yes) {
        all.push_back({{"nodes-see-folder", "nodes-see-supervisor", "nodes-submit", "node-clock"},
                       ask_a_node});
    }
    return all;
}

/// If a check hangs or dies, its first finding is a problem, and the others are unknown.
std::vector<Finding> findings_of(const Check& check, const Host::Answer& answer,
                                 std::chrono::seconds patience)
{
    if (answer.kind == Host::Answer::Kind::done) {
        return unpacked(answer.text);
    }
    const bool is_late = answer.kind == Host::Answer::Kind::late;
    auto findings = unknown(check.names, "could not be checked");
    findings.front().level = Level::problem;
    findings.front().text =
        is_late ? fmt::format("no answer within {} s", patience.count())
                : fmt::format("the check ended: {}", answer.text.empty() ? "killed" : answer.text);
    findings.front().remedy =
        is_late ? "a file server hangs, or a daemon hangs or is down (slurmctld, munged)" : "";
    return findings;
}

/// Findings from a node replace assumptions made on this host.
void prefer_later(std::vector<Finding>& findings, const std::vector<Finding>& later)
{
    std::erase_if(findings, [&](const Finding& one) {
        return std::any_of(later.begin(), later.end(), [&](const Finding& other) {
            return other.check == one.check && other.level != Level::unknown;
        });
    });
    for (const Finding& one : later) {
        const bool is_there = std::any_of(findings.begin(), findings.end(),
                                          [&](const Finding& f) { return f.check == one.check; });
        if (!is_there || one.level != Level::unknown) {
            findings.push_back(one);
        }
    }
}

} // namespace

std::vector<Finding> examine(Doors& doors, AskNodes nodes)
{
    const std::vector<Check> all = checks(nodes);
    std::vector<std::function<std::string()>> work;
    for (const Check& check : all) {
        work.emplace_back([&doors, &check] { return packed(check.work(doors)); });
    }
    const auto patience = nodes == AskNodes::yes ? k_patience_with_nodes : k_patience;
    const auto answers = doors.host().apart(work, patience);
    std::vector<Finding> findings;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto found = findings_of(all[i], answers[i], patience);
        const bool is_from_nodes = nodes == AskNodes::yes && i + 1 == all.size();
        if (is_from_nodes) {
            prefer_later(findings, found);
        } else {
            findings.insert(findings.end(), found.begin(), found.end());
        }
    }
    return findings;
}

} // namespace gpuq::cli
