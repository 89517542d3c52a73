// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/expected_start.h"

#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/queues/amount.h"
#include "runs/queues/eligibility.h"
#include "runs/queues/free_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

namespace gpuq {
namespace {

using Held = std::map<std::size_t, Amount>; ///< by the index of the node

/// A job that holds resources.
struct Holder {
    JobId job;
    bool waits = false; ///< still pending; starts first
    Held held;
};

int up(int number, int parts)
{
    return (number + parts - 1) / parts;
}

/// Simulates the cluster's nodes over time.
class Machine {
public:
    Machine(const AllJobs& all, const Inventory& inventory, Time now)
        : m_inventory(inventory)
        , m_now(now)
    {
        for (const Node& node : inventory.nodes) {
            Amount whole;
            whole.cpus = node.cpus;
            whole.memory_mib = node.memory_mib;
            for (const NodeGpus& gpus : node.gpus) {
                whole.gpus[gpus.model] += gpus.total;
            }
            if (node.shares.size() == 1 && whole.gpus.size() == 1) {
                whole.per_gpu = node.shares.front().per_gpu;
                whole.kind = node.shares.front().kind;
                whole.parts.assign(static_cast<std::size_t>(whole.gpus.begin()->second),
                                   whole.per_gpu);
            }
            m_index[node.name] = m_whole.size();
            m_free.push_back(whole);
            m_whole.push_back(std::move(whole));
        }
        for (const auto seating : {Seating::known_gpus, Seating::whole_gpus, Seating::others}) {
            for (const Job& job : all.jobs) {
                const bool runs =
                    job.state == JobState::running || job.state == JobState::suspended;
                if (runs && seating_of(job) == seating) {
                    seat(job);
                }
            }
        }
    }

    /// The nodes that a job may use. Jobs with the same queues and node lists share one entry.
    using Nodes = std::vector<std::size_t>;
    const Nodes& nodes_for(const Job& job)
    {
        const auto [group, is_new] = m_groups.try_emplace(
            {job.partition, job.size.only_nodes, job.size.excluded_nodes}, Nodes());
        if (is_new) {
            group->second = usable_nodes(job, m_inventory);
        }
        return group->second;
    }

    std::size_t groups() const { return m_groups.size(); }

    /// The nodes among `nodes` on which the job could start, with its share of each; `of`: the
    /// available resources.
    std::optional<Held> place(const Job& job, const Nodes& nodes,
                              const std::vector<Amount>& of) const
    {
        const int most = std::min(static_cast<int>(nodes.size()), most_nodes(job));
        for (int count = job.size.nodes; count <= most; ++count) {
            Held held;
            for (const std::size_t node : nodes) {
                if (auto share = share_on(node, job, count, of[node])) {
                    held.emplace(node, *std::move(share));
                }
                if (static_cast<int>(held.size()) == count) {
                    return held;
                }
            }
        }
        return std::nullopt;
    }
    std::optional<Held> place(const Job& job, const Nodes& nodes) const
    {
        return place(job, nodes, m_free);
    }
    bool could_ever(const Job& job, const Nodes& nodes) const
    {
        return place(job, nodes, m_whole).has_value();
    }
    /// False if it requests shares of nodes whose GPUs are divided in several ways.
    bool compares_shares(const Job& job, const Nodes& nodes) const
    {
        return !job.size.share || std::none_of(nodes.begin(), nodes.end(), [&](auto node) {
            return m_whole[node].parts.empty() && !m_inventory.nodes[node].shares.empty();
        });
    }

    void start(const Job& job, const Held& held)
    {
        for (const auto& [node, amount] : held) {
            m_free[node].take(amount);
        }
        const auto limit = limit_of(job, m_inventory);
        hold({job.id, true, held}, limit ? std::optional<Time>(m_now + *limit) : std::nullopt);
    }

    /// Advances to the next end of a job; false if there is none.
    bool pass(StartEstimate& basis)
    {
        const auto next = m_ends.begin();
        if (next == m_ends.end()) {
            return false;
        }
        const Holder& holder = next->second;
        m_now = std::max(m_now, next->first.first);
        for (const auto& [node, amount] : holder.held) {
            m_free[node].give(amount, m_whole[node]);
        }
        basis.after = holder.job;
        basis.after_waits = holder.waits;
        m_ends.erase(next);
        return true;
    }

    Time now() const { return m_now; }

    /// A job that holds resources on these nodes and releases them at no known time.
    const Holder* endless_on(const Nodes& nodes) const
    {
        const auto found =
            std::find_if(m_endless.begin(), m_endless.end(), [&](const Holder& holder) {
                return std::any_of(nodes.begin(), nodes.end(),
                                   [&](auto node) { return holder.held.contains(node); });
            });
        return found == m_endless.end() ? nullptr : &*found;
    }

private:
    std::optional<Amount> share_on(std::size_t node, const Job& job, int nodes,
                                   const Amount& free) const
    {
        const Amount& whole = m_whole[node];
        if (job.size.whole_nodes) {
            const bool idle = free.cpus == whole.cpus && free.gpus == whole.gpus;
            const auto least = shared_out(job, nodes, whole);
            return idle && least ? std::optional(whole) : std::nullopt;
        }
        return shared_out(job, nodes, free);
    }

    /// An even share of the job's request, if `free` suffices.
    static std::optional<Amount> shared_out(const Job& job, int nodes, const Amount& free)
    {
        Amount share;
        share.cpus = up(job.size.cpus, nodes);
        share.memory_mib =
            (job.size.memory_mib + static_cast<unsigned>(nodes) - 1) / static_cast<unsigned>(nodes);
        if (share.cpus > free.cpus || share.memory_mib > free.memory_mib ||
            (job.size.share && !free.mark_shares(*job.size.share, share))) {
            return std::nullopt;
        }
        for (const RequestedGpus& asked : job.size.gpus) {
            int missing = up(asked.count, nodes);
            for (const auto& [model, count] : free.gpus) {
                const bool fits = asked.model.empty() || asked.model == model;
                const auto given = share.gpus.find(model);
                const int left = count - (given == share.gpus.end() ? 0 : given->second);
                const int taken = fits ? std::min(left, missing) : 0;
                missing -= taken;
                if (taken > 0) {
                    share.gpus[model] += taken;
                    free.mark_whole(taken, share);
                }
            }
            if (missing > 0) {
                return std::nullopt;
            }
        }
        return share;
    }

    /// The order in which running jobs are placed on their nodes: a GPU without a known job is
    /// assigned to one of the others.
    enum class Seating { known_gpus, whole_gpus, others };
    static Seating seating_of(const Job& job)
    {
        const auto& shares = job.held.shares;
        const bool is_known = std::none_of(shares.begin(), shares.end(),
                                           [](const HeldShares& one) { return one.gpus.empty(); });
        return !shares.empty() && is_known ? Seating::known_gpus
               : job.size.share            ? Seating::others
                                           : Seating::whole_gpus;
    }

    /// Places a running job on its nodes.
    void seat(const Job& job)
    {
        const auto hosts = hosts_of(job.nodes);
        Holder holder{job.id, false, {}};
        for (const std::string& host : hosts) {
            const auto node = m_index.find(host);
            if (node == m_index.end()) {
                continue;
            }
            const int count = static_cast<int>(hosts.size());
            Amount& held = holder.held[node->second];
            if (job.size.whole_nodes) {
                held = m_whole[node->second];
                continue;
            }
            held.cpus = up(job.size.cpus, count);
            held.memory_mib = job.size.memory_mib / static_cast<unsigned>(count);
            if (job.size.share && seating_of(job) == Seating::others) {
                (void)m_free[node->second].mark_shares(*job.size.share, held);
            }
        }
        for (const HeldGpus& gpus : job.held.whole) {
            const auto node = m_index.find(gpus.node);
            if (node != m_index.end() && !job.size.whole_nodes) {
                holder.held[node->second].gpus[gpus.model] += gpus.count;
                m_free[node->second].mark_whole(gpus.count, holder.held[node->second]);
            }
        }
        if (seating_of(job) == Seating::known_gpus && !job.size.whole_nodes) {
            seat_shares(job, holder);
        }
        for (const auto& [node, amount] : holder.held) {
            m_free[node].take(amount);
        }
        hold(std::move(holder), job.ends_at);
    }

    void seat_shares(const Job& job, Holder& holder) const
    {
        for (const HeldShares& shares : job.held.shares) {
            const auto node = m_index.find(shares.node);
            if (node == m_index.end()) {
                continue;
            }
            std::vector<int>& parts = holder.held[node->second].parts;
            parts.resize(m_whole[node->second].parts.size());
            for (const int index : shares.gpus) {
                if (static_cast<std::size_t>(index) < parts.size()) {
                    parts[static_cast<std::size_t>(index)] +=
                        up(shares.parts, static_cast<int>(shares.gpus.size()));
                }
            }
        }
    }

    void hold(Holder holder, std::optional<Time> until)
    {
        if (until) {
            m_ends.emplace(std::pair(*until, holder.job), std::move(holder));
        } else {
            m_endless.push_back(std::move(holder));
        }
    }

    const Inventory& m_inventory;
    Time m_now;
    std::map<std::string, std::size_t> m_index;
    std::map<std::tuple<std::string, std::string, std::string>, Nodes> m_groups;
    std::vector<Amount> m_whole, m_free;
    std::multimap<std::pair<Time, JobId>, Holder> m_ends; ///< jobs with a limit
    std::vector<Holder> m_endless;
};

StartEstimate not_known(std::string why)
{
    StartEstimate estimate;
    estimate.unknown = std::move(why);
    return estimate;
}

/// Advances the simulation until every wanted job has started.
class Line {
public:
    Line(const std::set<JobId>& wanted, const AllJobs& all, const Inventory& inventory, Time now)
        : m_machine(all, inventory, now)
    {
        for (const Job& job : all.jobs) {
            if (could_start(job)) {
                m_line.push_back({&job, &m_machine.nodes_for(job)});
            }
        }
        std::sort(m_line.begin(), m_line.end(), [](const Place& one, const Place& other) {
            return goes_before(*one.job, *other.job);
        });
        std::erase_if(m_line, [&](const Place& place) {
            const Job* const job = place.job;
            const bool can = m_machine.could_ever(*job, *place.nodes);
            if (wanted.contains(job->id)) {
                std::string why = obstacle(*job, all);
                if (why.empty() && !can) {
                    why = m_machine.compares_shares(*job, *place.nodes)
                              ? "the nodes that are up in its queue lack the resources it asks for"
                              : "gpuq does not compare shares with nodes that have several "
                                "models or kinds of them";
                }
                m_wanted += why.empty() ? 1 : 0;
                m_found[job->id] = not_known(std::move(why));
            }
            // It waits for nodes that are down or for its queue, or can never start.
            return !can || waits_for_queue(*job);
        });
    }

    StartEstimates pass()
    {
        do {
            start_those_that_fit();
        } while (m_wanted > 0 && m_machine.pass(m_basis));
        for (const Place& place : m_line) {
            const auto found = m_found.find(place.job->id);
            if (found != m_found.end() && found->second.unknown.empty()) {
                found->second = not_known(why_never(*place.nodes));
            }
        }
        return std::move(m_found);
    }

private:
    using Nodes = Machine::Nodes;
    struct Place {
        const Job* job;
        const Nodes* nodes; ///< the nodes that it may use
    };

    void start_those_that_fit()
    {
        std::set<const Nodes*> blocked;
        std::set<std::size_t> closed;
        for (auto place = m_line.begin(); place != m_line.end() && m_wanted > 0;) {
            const auto& [job, nodes] = *place;
            if (blocked.contains(nodes)) {
                ++place;
                continue;
            }
            Nodes open = *nodes;
            if (!closed.empty()) {
                std::erase_if(open, [&](std::size_t node) { return closed.contains(node); });
            }
            if (const auto held = m_machine.place(*job, open)) {
                m_machine.start(*job, *held);
                note_start(*job);
                place = m_line.erase(place);
                continue;
            }
            closed.insert(open.begin(), open.end());
            blocked.insert(nodes);
            if (blocked.size() == m_machine.groups()) {
                return; // no nodes are left for the others
            }
            ++place;
        }
    }

    void note_start(const Job& job)
    {
        const auto found = m_found.find(job.id);
        if (found != m_found.end() && found->second.unknown.empty()) {
            found->second = m_basis;
            found->second.at = m_machine.now();
            --m_wanted;
        }
    }

    std::string why_never(const Nodes& nodes) const
    {
        const auto* endless = m_machine.endless_on(nodes);
        return endless == nullptr ? "Slurm does not show when the jobs before it end"
                                  : fmt::format("job {}{} has no time limit", endless->job.value,
                                                endless->waits ? ", which goes first," : "");
    }

    Machine m_machine;
    std::vector<Place> m_line;
    StartEstimate m_basis;
    StartEstimates m_found;
    int m_wanted = 0; ///< number of jobs without an estimate so far
};

} // namespace

StartEstimates expected_starts(const std::set<JobId>& wanted, const AllJobs& all,
                               const Inventory& inventory, Time now)
{
    return Line(wanted, all, inventory, now).pass();
}

bool wants_estimate(const Job& job)
{
    return could_start(job) && !job.started_at;
}

std::string basis_text(const StartEstimate& estimate)
{
    if (!estimate.after) {
        return "Slurm next schedules: there is room for it";
    }
    return fmt::format("job {}{} reaches its time limit", estimate.after->value,
                       estimate.after_waits ? ", which goes first," : "");
}

} // namespace gpuq
