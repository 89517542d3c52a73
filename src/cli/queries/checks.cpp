// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/checks.h"

#include "cli/base/read_only.h"
#include "cli/queries/node_check.h"
#include "core/codec.h"
#include "embedded/cluster.h"
#include "ports/accounting.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"

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
    std::function<std::vector<Finding>(Services&)> work;
};

std::vector<Finding> check_configuration(Services& services)
{
    const auto settings = services.settings();
    if (!settings) {
        return {{"configuration", Level::problem, settings.error().text,
                 "correct this setting; see FILES in man gpuq"}};
    }
    if (settings->notify && !services.host().program(settings->notify->front())) {
        return {{"configuration", Level::warning,
                 fmt::format("notify: {} is not in PATH, or is not executable",
                             settings->notify->front()),
                 "give its absolute path; see FILES in man gpuq"}};
    }
    for (const char* name : {"XDG_CONFIG_HOME", "XDG_STATE_HOME"}) {
        const auto value = services.variable(name);
        if (value && !value->empty() && !value->starts_with('/')) {
            return {{"configuration", Level::warning,
                     fmt::format("{} is not an absolute path and is ignored", name),
                     "set it to an absolute path, or unset it"}};
        }
    }
    return {{"configuration", Level::ok, "variables and files are valid", ""}};
}

std::vector<Finding> check_slurm(Services& services)
{
    const auto cluster = services.cluster();
    if (!cluster) {
        return assess_silence(cluster.error());
    }
    Answered answered{
        (*cluster)->name().has_value() ? *(*cluster)->name() : "", 0ms, services.clock().now(), {}};
    const auto begin = services.clock().steady();
    const auto controller = (*cluster)->controller();
    answered.took =
        std::chrono::duration_cast<std::chrono::milliseconds>(services.clock().steady() - begin);
    answered.after = services.clock().now();
    return controller ? assess_controller(*controller, answered)
                      : assess_silence(controller.error());
}

std::vector<Finding> check_accounting(Services& services)
{
    const auto cluster = services.cluster();
    const auto controller =
        cluster ? (*cluster)->controller() : Result<Controller>(cluster.error());
    const auto accounting = services.accounting();
    if (!controller || !accounting) {
        return {{"accounting", Level::unknown, "Slurm did not answer", ""}};
    }
    // Any job will do: a response that it does not exist is also a response.
    const auto conf = services.variable("SLURM_CONF"); // set when the cluster was detected
    return {assess_accounting(controller->keeps_accounting, (*accounting)->past_job(JobId{1}),
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

std::vector<Finding> check_queues(Services& services)
{
    const auto cluster = services.cluster();
    const auto queues =
        cluster ? (*cluster)->partitions() : Result<std::vector<Partition>>(cluster.error());
    const auto nodes = queues ? (*cluster)->nodes() : Result<std::vector<Node>>(queues.error());
    return nodes ? assess_queues(*queues, *nodes) : unknown(k_queue_checks, "Slurm did not answer");
}

std::vector<Finding> check_programs(Services& services)
{
    std::vector<Finding> findings;
    const auto srun = services.host().program("srun");
    findings.push_back(srun ? Finding{"srun", Level::ok, *srun, ""}
                            : Finding{"srun", Level::problem, "srun is not in PATH",
                                      "add the directory of Slurm's programs to PATH"});
    const auto supervisor = services.supervisor();
    findings.push_back(supervisor
                           ? Finding{"supervisor", Level::ok, *supervisor, ""}
                           : Finding{"supervisor", Level::problem, supervisor.error().text, ""});
    return findings;
}

std::vector<Finding> check_directory(Services& services)
{
    const auto path = services.state_dir();
    if (!path) {
        return assess_directory("", path.error(), ::geteuid());
    }
    auto findings = assess_directory(*path, services.host().directory(*path), ::geteuid());
    // Permissions do not show a full disk or a failing server: write a file.
    const bool promised = findings.front().level == Level::ok && !is_read_only(services);
    const auto store = promised ? services.store() : Result<Store*>(nullptr);
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

std::vector<Check> checks(NodeQueries nodes)
{
    std::vector<Check> all = {
        {{"configuration"}, check_configuration},
        {{"slurm", "version", "clock", "defer", "batch-sched-delay", "kill-wait", "inactive-limit",
          "memory-limit", "private-data"},
         check_slurm},
        {{"accounting"}, check_accounting},
        {k_queue_checks, check_queues},
        {{"srun", "supervisor"}, check_programs},
        {{"state-folder", "space", "nodes-see-folder"}, check_directory},
    };
    if (nodes == NodeQueries::yes) {
        all.push_back({{"nodes-see-folder", "nodes-see-supervisor", "nodes-submit", "node-clock"},
                       query_node});
    }
    return all;
}

/// If a check hangs or dies, its first finding is a problem, and the others are unknown.
std::vector<Finding> findings_of(const Check& check, const Host::Answer& answer,
                                 std::chrono::seconds patience)
{
    const bool is_done = answer.kind == Host::Answer::Kind::done;
    if (auto found = is_done ? decoded<std::vector<Finding>>(answer.text) : std::nullopt) {
        return *std::move(found);
    }
    const bool is_late = answer.kind == Host::Answer::Kind::late;
    auto findings = unknown(check.names, "could not be checked");
    findings.front().level = Level::problem;
    findings.front().text =
        is_late ? fmt::format("no answer within {} s", patience.count())
                : fmt::format("the check ended: {}",
                              is_done || answer.text.empty() ? "killed" : answer.text);
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
        const bool exists = std::any_of(findings.begin(), findings.end(),
                                        [&](const Finding& f) { return f.check == one.check; });
        if (!exists || one.level != Level::unknown) {
            findings.push_back(one);
        }
    }
}

} // namespace

std::vector<Finding> examine(Services& services, NodeQueries nodes)
{
    const std::vector<Check> all = checks(nodes);
    std::vector<std::function<std::string()>> work;
    for (const Check& check : all) {
        work.emplace_back([&services, &check] { return encoded(check.work(services)); });
    }
    const auto patience = nodes == NodeQueries::yes ? k_patience_with_nodes : k_patience;
    const auto answers = services.host().apart(work, patience);
    std::vector<Finding> findings;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto found = findings_of(all[i], answers[i], patience);
        const bool is_from_nodes = nodes == NodeQueries::yes && i + 1 == all.size();
        if (is_from_nodes) {
            prefer_later(findings, found);
        } else {
            findings.insert(findings.end(), found.begin(), found.end());
        }
    }
    return findings;
}

} // namespace gpuq::cli
