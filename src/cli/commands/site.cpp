// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/output_file.h"
#include "cli/base/table_output.h"
#include "cli/commands/site_overview.h"
#include "cli/pages/site_page.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/in_force.h"
#include "policy/decide.h"
#include "ports/accounting.h"
#include "ports/clock.h"
#include "ports/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

// `gpuq site`. Whatever it shows, everyone may see: names and figures that must not be published
// are removed from the values (public_use, public_waits, planned_use) before anything is printed.
// Three requests to the controller and two to accounting, and the files are written only after the
// controller has answered: otherwise the old ones stay.

namespace gpuq::cli {
namespace {

using policy::Publish;

constexpr std::array k_options = {
    Option{0, "html", "DIR", "write the page DIR/index.html"},
    Option{0, "prometheus", "", "print metrics for Prometheus"},
    Option{0, "textfile", "FILE", "write the metrics to a file, for node_exporter"},
    Option{0, "overview", "DIR", "write the overview that all users of this host share"},
    Option{0, "policy", "FILE", "this policy instead of the one in force"}};

struct Outputs {
    std::optional<OutputFile> page;
    std::optional<OutputFile> metrics;
    bool prints = false;
};

Result<Outputs> outputs_of(const Invocation& invocation)
{
    const Options& options = invocation.options;
    Outputs outputs;
    if (invocation.globals.json) {
        return fail(Error::Kind::usage,
                    "site has no JSON document: gpuq free --json, gpuq usage --json");
    }
    if (const auto directory = options.value("html")) {
        TRY_ASSIGN(outputs.page, OutputFile::at(*directory + "/index.html"));
    }
    if (const auto file = options.value("textfile")) {
        TRY_ASSIGN(outputs.metrics, OutputFile::at(*file));
    }
    outputs.prints = options.has("prometheus");
    return outputs.page || outputs.metrics || outputs.prints
               ? Result<Outputs>(std::move(outputs))
               : fail(Error::Kind::usage,
                      "site needs --html DIR, --prometheus, --textfile FILE or --overview DIR");
}

Result<std::optional<policy::Policy>> policy_of(Invocation& invocation)
{
    if (const auto path = invocation.options.value("policy")) {
        TRY_ASSIGN(LoadedPolicy loaded, load_valid_policy(invocation.services, *path));
        return std::optional(std::move(loaded.reading.policy));
    }
    return policy_in_force(invocation.services);
}

Result<std::vector<UseRecord>> use_of_week(Services& services, const Publish& publish,
                                           const std::vector<Node>& nodes, Time now)
{
    UseQuestion question{now - k_site_week, now, {}, {}};
    question.with_labs = publish.use == Publish::Use::by_lab;
    TRY_ASSIGN(UseRecords* const accounting, services.use_records());
    TRY_ASSIGN(std::vector<UseRecord> records, accounting->use_records(question, Steps::leave_out));
    set_shares_per_gpu(records, nodes);
    return records;
}

/// The partitions that Slurm shows to this user: the names of hidden ones, and of those of a group,
/// are not for the public.
std::vector<sim::QueueWaits> waits_by_shown_partition(const std::vector<sim::AccountedWait>& waits,
                                                      const std::vector<Partition>& shown)
{
    auto partitions = sim::waits_by_partition(waits);
    std::erase_if(partitions, [&](const sim::QueueWaits& one) {
        return std::none_of(shown.begin(), shown.end(), [&](const Partition& partition) {
            return partition.name == one.queue;
        });
    });
    return partitions;
}

Result<SiteHistory> find_history(Services& services, const std::optional<policy::Policy>& policy,
                                 const Inventory& inventory, Time now)
{
    const Publish publish = policy ? policy->publish : Publish{};
    const auto least = static_cast<std::size_t>(publish.least_users.value);
    TRY_ASSIGN(const std::string text, services.jobs_since(now - k_site_week));
    TRY_ASSIGN(const std::vector<UseRecord> records,
               use_of_week(services, publish, inventory.nodes, now));
    const auto waits_since = [&](Time since) -> Result<std::vector<sim::QueueWaits>> {
        TRY_ASSIGN(const auto found, sim::parse_waits(text, "sacct", now, since));
        return public_waits(policy && !policy->queues.empty()
                                ? sim::waits_by_queue(policy::Rules(*policy), found.waits)
                                : waits_by_shown_partition(found.waits, inventory.partitions),
                            least);
    };
    SiteHistory history;
    TRY_ASSIGN(history.day, waits_since(now - k_site_day));
    TRY_ASSIGN(history.week, waits_since(now - k_site_week));
    history.by_model = public_use(records, UseBy::model, least);
    if (publish.use != Publish::Use::by_model) {
        history.by_name = public_use(
            records, publish.use == Publish::Use::by_lab ? UseBy::lab : UseBy::account, least);
    }
    return history;
}

Result<SiteState> find_site(Invocation& invocation)
{
    Services& services = invocation.services;
    SiteState state;
    state.at = services.clock().now();
    TRY_ASSIGN(const auto policy, policy_of(invocation));
    state.publish = policy ? policy->publish : Publish{};
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(state.cluster, cluster->name());
    TRY_ASSIGN(Inventory inventory, cluster->inventory());
    if (const auto reservations = cluster->reservations()) {
        const auto reserved = reserved_gpus(*reservations, inventory.nodes);
        mark_reserved(inventory.nodes, reserved, state.at);
        state.planned = planned_use(reserved, policy ? &*policy : nullptr);
    } else {
        print_message(
            fmt::format("{}; reservations are shown as unknown", reservations.error().text));
    }
    state.gpus = gpus_by_model(gpu_pools(inventory));
    if (auto history = find_history(services, policy, inventory, state.at)) {
        state.history = *std::move(history);
    } else {
        print_message(fmt::format("{}; waits and use are shown as unknown", history.error().text));
    }
    return state;
}

Result<int> site(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("site: unexpected argument '{}'", invocation.arguments.front()));
    }
    const Options& options = invocation.options;
    if (const auto directory = options.value("overview")) {
        if (options.has("html") || options.has("textfile") || options.has("prometheus") ||
            options.has("policy") || invocation.globals.json) {
            return fail(Error::Kind::usage, "site: --overview takes no other option of site");
        }
        return write_shared_overview(invocation.services, *directory);
    }
    TRY_ASSIGN(const Outputs outputs, outputs_of(invocation));
    TRY_ASSIGN(const SiteState state, find_site(invocation));
    if (outputs.page) {
        TRY(outputs.page->write(site_page(state), OutputFile::Readers::all));
    }
    if (outputs.metrics) {
        TRY(outputs.metrics->write(site_metrics(state), OutputFile::Readers::all));
    }
    if (outputs.prints) {
        TRY(print_text(site_metrics(state)));
    }
    return 0;
}

} // namespace

const Verb k_site_verb{"site",
                       "gpuq site --html DIR | --prometheus | --textfile FILE | --overview DIR",
                       "a page or metrics for the public: free GPUs, waits, use", site, k_options};

} // namespace gpuq::cli
