// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queue_choice.h"

#include "core/host_list.h"
#include "core/lower_case.h"
#include "core/nearest.h"
#include "core/walltime.h"
#include "ports/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace gpuq {
namespace {

using std::chrono::minutes;
using Partitions = std::vector<Partition>;

/// Order of preference: smaller limits first, the default queue first among equals.
bool goes_before(const Partition& a, const Partition& b)
{
    const minutes limit_a = a.max_time.value_or(minutes::max());
    const minutes limit_b = b.max_time.value_or(minutes::max());
    return limit_a != limit_b ? limit_a < limit_b : a.is_default && !b.is_default;
}

std::string limit_text(const Partition& queue)
{
    return queue.max_time ? to_text(*queue.max_time) : "no limit";
}

/// The queue with the smallest limit that is up and allows `walltime`, or null.
const Partition* smallest_for(const Partitions& partitions, minutes walltime)
{
    const Partition* best = nullptr;
    for (const Partition& queue : partitions) {
        if (queue.up && holds(queue, walltime) && (best == nullptr || goes_before(queue, *best))) {
            best = &queue;
        }
    }
    return best;
}

const Partition* longest_of(const Partitions& partitions)
{
    const Partition* best = nullptr;
    for (const Partition& queue : partitions) {
        if (queue.up && (best == nullptr || goes_before(*best, queue))) {
            best = &queue;
        }
    }
    return best;
}

using Entry = SiteContext::Entry;

Entry entry_of(const SiteContext& site_context, const Partition& queue)
{
    // The user's default account is not known here, but should be able to use the default queue.
    if (!queue.ruled && !queue.accounts.empty() && !queue.is_default) {
        return Entry::unknown;
    }
    const auto found = site_context.entry.find(queue.name);
    return found == site_context.entry.end() ? Entry::open : found->second;
}

/// The queues whose access for this user is `at_worst` or better.
Partitions open_to(const Partitions& partitions, const SiteContext& site_context, Entry at_worst)
{
    Partitions open;
    std::copy_if(partitions.begin(), partitions.end(), std::back_inserter(open),
                 [&](const Partition& queue) { return entry_of(site_context, queue) <= at_worst; });
    return open;
}

bool asks_for_gpus(const RunParameters& parameters)
{
    const auto& gpus = parameters.gpus;
    return !gpus || gpus->count > 0 || gpus->share || gpus->mig;
}

bool lacks_gpus(const Partition& queue, const RunParameters& parameters)
{
    return !queue.ruled && queue.has_gpus == false && asks_for_gpus(parameters);
}

/// Whether it takes an account that the user has named. Slurm writes all names in lower case.
bool takes_account(const Partition& queue, const std::string& account)
{
    const auto contains = [&](const std::vector<std::string>& names) {
        return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return lower_case(name) == lower_case(account);
        });
    };
    return queue.accounts.empty() ? !contains(queue.denied_accounts) : contains(queue.accounts);
}

/// False if the site accepts no jobs for it from this host.
bool takes_from_here(const Partition& queue, const SiteContext& site_context)
{
    const auto hosts = expand_hosts(queue.submit_hosts);
    return queue.submit_hosts.empty() || queue.submit_hosts == "ALL" || site_context.host.empty() ||
           !hosts || std::find(hosts->begin(), hosts->end(), site_context.host) != hosts->end();
}

/// The queues that can take the request at all, for a run that names none; all if there is none.
Partitions suited_to(const RunParameters& parameters, const Partitions& partitions,
                     const SiteContext& site_context)
{
    const auto& account = parameters.account;
    Partitions suited;
    std::copy_if(partitions.begin(), partitions.end(), std::back_inserter(suited),
                 [&](const Partition& queue) {
                     return !lacks_gpus(queue, parameters) && !queue.restricted &&
                            takes_from_here(queue, site_context) &&
                            queue.least_nodes <= parameters.nodes.value_or(1) &&
                            (queue.ruled || !account || takes_account(queue, *account));
                 });
    if (account) {
        for (Partition& queue : suited) {
            queue.accounts.clear(); // it takes this one
        }
    }
    return suited.empty() ? partitions : suited;
}

Error without_gpus(const RunParameters& parameters, const Partitions& partitions,
                   const Partition& queue, const SiteContext& site_context)
{
    const Partitions others = suited_to(parameters, partitions, site_context);
    const Partition* const other = smallest_for(others, parameters.walltime.value_or(minutes{1}));
    return fail(Error::Kind::denied,
                fmt::format("queue {} has no GPUs{}; -g 0 asks for none", queue.name,
                            other == nullptr || lacks_gpus(*other, parameters)
                                ? ""
                                : fmt::format(": -p {}", other->name)));
}

/// With the queues that are closed for now, but accept jobs, as if they were up.
Partitions with_closed(Partitions partitions)
{
    for (Partition& queue : partitions) {
        queue.up = queue.up || queue.accepts;
    }
    return partitions;
}

Error no_queue_is_up()
{
    return fail(Error::Kind::denied, "no queue of this cluster is up; try again later");
}

Error beyond_every_queue(const Partitions& partitions, minutes walltime)
{
    const Partition* longest = longest_of(partitions);
    if (longest == nullptr) {
        return no_queue_is_up();
    }
    return fail(Error::Kind::denied,
                fmt::format("no queue takes {}: the longest is {} with {}", to_text(walltime),
                            longest->name, limit_text(*longest)));
}

Error beyond_this_queue(const Partitions& partitions, const Partition& queue, minutes walltime)
{
    const Partition* other = smallest_for(partitions, walltime);
    if (other == nullptr) {
        return beyond_every_queue(partitions, walltime);
    }
    return fail(Error::Kind::denied,
                fmt::format("queue {} takes at most {}; {} takes {}: -p {}", queue.name,
                            limit_text(queue), other->name, to_text(walltime), other->name));
}

Result<const Partition*> queue_named(const Partitions& partitions, const std::string& name)
{
    std::vector<std::string> names;
    for (const Partition& queue : partitions) {
        if (queue.name == name) {
            return &queue;
        }
        names.push_back(queue.name);
    }
    return fail(Error::Kind::missing,
                fmt::format("no queue '{}'{}; there are: {}", name, did_you_mean(name, names),
                            fmt::join(names, ", ")));
}

Result<const Partition*> default_queue(const Partitions& partitions)
{
    for (const Partition& queue : partitions) {
        if (queue.is_default && queue.up) {
            return &queue;
        }
    }
    if (const Partition* smallest = smallest_for(partitions, minutes{1})) {
        return smallest;
    }
    return no_queue_is_up();
}

Error without_checkpoints(Error error)
{
    error.text += "; a program that saves checkpoints can continue beyond that: give their "
                  "location (--checkpoint 'out/*.pt'), see man gpuq-chain";
    return error;
}

Error without_chains(Error error, const Partition* continues)
{
    error.text +=
        continues == nullptr
            ? "; no queue lets runs continue beyond its limit (the policy has no chain for any)"
            : fmt::format("; in {0} a run can continue beyond that: -p {0}", continues->name);
    return error;
}

} // namespace

bool holds(const Partition& queue, minutes walltime)
{
    return !queue.max_time || walltime <= *queue.max_time;
}

bool has_nodes(const Partition& queue, int nodes)
{
    return !queue.most_nodes || nodes <= *queue.most_nodes;
}

Error too_many_nodes(const Partitions& partitions, const Partition& queue, int nodes)
{
    const auto most = std::max_element(
        partitions.begin(), partitions.end(), [](const Partition& a, const Partition& b) {
            return a.most_nodes.value_or(0) < b.most_nodes.value_or(0);
        });
    const std::string best = has_nodes(*most, nodes)
                                 ? fmt::format("{0} has them: -p {0}", most->name)
                                 : fmt::format("no queue has more than {}", *most->most_nodes);
    return fail(Error::Kind::denied,
                fmt::format("-N {}: a job in queue {} can have {} node{}; {}", nodes, queue.name,
                            *queue.most_nodes, *queue.most_nodes == 1 ? "" : "s", best));
}

const ChainLimits* chain_limits(const SiteContext& site_context, const Partition& queue)
{
    const auto found = site_context.chains.find(queue.name);
    return found == site_context.chains.end() ? nullptr : &found->second;
}

const Partition* longest_with_chains(const Partitions& partitions, const SiteContext& site_context)
{
    const auto makes_chains = [&](const Partition& queue) {
        const ChainLimits* limits = chain_limits(site_context, queue);
        return queue.up && (limits == nullptr || limits->allowed);
    };
    for (const Entry entry : {Entry::open, Entry::unknown}) {
        const Partition* best = nullptr;
        for (const Partition& queue : partitions) {
            if (entry_of(site_context, queue) == entry && makes_chains(queue) &&
                (best == nullptr || goes_before(*best, queue))) {
                best = &queue;
            }
        }
        if (best != nullptr) {
            return best;
        }
    }
    return nullptr;
}

namespace {

Result<const Partition*> check_queue(const RunParameters& parameters, const Partitions& partitions,
                                     bool chainable, const SiteContext& site_context)
{
    TRY_ASSIGN(const Partition* queue, queue_named(partitions, *parameters.queue));
    if (lacks_gpus(*queue, parameters)) {
        return without_gpus(parameters, partitions, *queue, site_context);
    }
    const ChainLimits* limits = chain_limits(site_context, *queue);
    const bool makes_chains = limits == nullptr || limits->allowed;
    if (!parameters.walltime || holds(*queue, *parameters.walltime) ||
        (chainable && makes_chains)) {
        return queue;
    }
    const Partitions open = open_to(partitions, site_context, Entry::open);
    const bool in_vain =
        smallest_for(open, *parameters.walltime) == nullptr && longest_of(open) != nullptr;
    const Error error = beyond_this_queue(open, *queue, *parameters.walltime);
    return !in_vain       ? error
           : makes_chains ? without_checkpoints(error)
                          : without_chains(error, longest_with_chains(partitions, site_context));
}

Result<const Partition*> choose_among(const RunParameters& parameters, const Partitions& partitions,
                                      bool chainable, const SiteContext& site_context)
{
    const Partition* const continues = longest_with_chains(partitions, site_context);
    const bool chained = parameters.chain.are_given();
    if (!parameters.walltime) {
        return default_queue(partitions);
    }
    const minutes link = parameters.chain.link ? std::chrono::ceil<minutes>(*parameters.chain.link)
                                               : *parameters.walltime;
    if (const Partition* queue = smallest_for(partitions, chained ? link : *parameters.walltime)) {
        return queue;
    }
    if (chainable && continues != nullptr) {
        return continues;
    }
    const Error error = beyond_every_queue(partitions, *parameters.walltime);
    return longest_of(partitions) == nullptr ? error
           : continues == nullptr            ? without_chains(error, nullptr)
                                             : without_checkpoints(error);
}

} // namespace

Result<const Partition*> choose_queue(const RunParameters& parameters, const Partitions& partitions,
                                      bool chainable, const SiteContext& site_context)
{
    if (parameters.queue) {
        return check_queue(parameters, partitions, chainable, site_context);
    }
    const auto choose = [&](const Partitions& all) -> Result<std::string> {
        // A queue that may be closed to this user is used only if no other fits: Slurm decides.
        const Partitions open = open_to(all, site_context, Entry::open);
        const Partitions possible = open_to(all, site_context, Entry::unknown);
        const auto chosen = choose_among(parameters, open, chainable, site_context);
        if (chosen) {
            return (*chosen)->name;
        }
        const auto other = choose_among(parameters, possible, chainable, site_context);
        return other          ? Result<std::string>((*other)->name)
               : open.empty() ? other.error()
                              : chosen.error();
    };
    const Partitions suited = suited_to(parameters, partitions, site_context);
    auto chosen = choose(suited);
    if (!chosen) {
        chosen = choose(with_closed(suited));
    }
    TRY_ASSIGN(const std::string name, std::move(chosen));
    return queue_named(partitions, name);
}

std::vector<std::string> queue_names(const RunParameters& parameters, const Partitions& partitions,
                                     const Partition& queue, const SiteContext& site_context)
{
    if (parameters.queue || !queue.ruled) {
        return {queue.name};
    }
    std::vector<const Partition*> fitting;
    for (const Partition& other : partitions) {
        if (other.ruled && (queue.up ? other.up : other.accepts) && !goes_before(other, queue) &&
            entry_of(site_context, other) != Entry::closed &&
            takes_from_here(other, site_context)) {
            fitting.push_back(&other);
        }
    }
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const Partition* a, const Partition* b) { return goes_before(*a, *b); });
    std::vector<std::string> names;
    for (const Partition* other : fitting) {
        names.push_back(other->name);
    }
    return names;
}

Result<void> check_walltime(const Partitions& partitions, const std::string& name, minutes walltime)
{
    for (const Partition& queue : partitions) {
        if (queue.name == name && !holds(queue, walltime)) {
            return beyond_this_queue(partitions, queue, walltime);
        }
    }
    return {};
}

} // namespace gpuq
