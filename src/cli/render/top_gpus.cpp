// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_gpus.h"

#include "cli/render/forecast_text.h"
#include "cli/render/free_table.h"
#include "cli/render/reservation_text.h"
#include "cli/render/run_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace gpuq::cli {
namespace {

using tui::Gpu;

double number(const Reading& reading)
{
    return static_cast<double>(reading.value().value_or(0));
}

/// The GPUs of a picture while it is made. An object so that its parts need not pass the tables
/// around.
class Gpus {
public:
    Gpus(tui::Picture& picture, const TopFound& found, Time now)
        : m_picture(picture)
        , m_found(found)
        , m_now(now)
    {
        for (const RunStatus& run : found.runs) {
            if (run.job && run.state != RunState::ended) {
                m_runs.emplace(run.job->job.value, &run);
            }
        }
        for (const Holding& holding : found.overview.holdings) {
            m_holdings[{holding.node, holding.model}].push_back(&holding);
        }
    }

    void add()
    {
        for (const PoolUse& use : m_found.overview.pools) {
            tui::GpuModel group;
            group.name = use.pool.model;
            group.queues = fmt::format("{}", fmt::join(use.pool.queues, ","));
            group.total = use.pool.total;
            group.free = use.pool.free;
            group.mine = use.mine;
            group.others = of_others(use);
            group.down = use.pool.down;
            group.reserved = use.pool.blocked;
            group.next = use.next;
            group.shares = shares_text(use.pool);
            if (use.forecast && use.pool.free == 0) {
                group.forecast = forecast_text(*use.forecast, m_now);
            }
            for (const NodeUse& node : use.nodes) {
                group.nodes.push_back(node_of(node, use.pool.model));
            }
            m_picture.gpus.push_back(std::move(group));
        }
    }

private:
    /// Those in use first: the user's, then those of others; then the free and the unusable ones.
    tui::GpuNode node_of(const NodeUse& use, const std::string& model)
    {
        tui::GpuNode node{use.name, {}, reserved(use.name)};
        const auto add = [&](Gpu::State state, int count) {
            const int room = std::max(use.total - static_cast<int>(node.gpus.size()), 0);
            node.gpus.insert(node.gpus.end(), static_cast<std::size_t>(std::clamp(count, 0, room)),
                             Gpu{state, -1, {}, {}});
        };
        if (!use.in_use) {
            add(Gpu::State::unknown, use.total);
            return node;
        }
        const int others = std::max(*use.in_use - use.mine, 0);
        add_held(node, use, model, true, use.mine);
        add(Gpu::State::mine, use.mine - static_cast<int>(node.gpus.size()));
        add_held(node, use, model, false, others);
        add(Gpu::State::others, *use.in_use - static_cast<int>(node.gpus.size()));
        add(Gpu::State::free, free_on(use).value_or(0));
        add(Gpu::State::reserved, use.blocked);
        add(Gpu::State::down, use.total);
        return node;
    }

    /// The first reservation of a node, as text.
    std::string reserved(const std::string& node) const
    {
        for (const ReservedGpus& one : m_found.overview.reserved) {
            if (m_now < one.reservation.end &&
                std::find(one.nodes.begin(), one.nodes.end(), node) != one.nodes.end()) {
                return reserved_text(one.reservation, m_now);
            }
        }
        return "";
    }

    /// At most `most` GPUs that the user or others hold by known jobs.
    void add_held(tui::GpuNode& node, const NodeUse& use, const std::string& model, bool mine,
                  int most)
    {
        const auto known = m_holdings.find({use.name, model});
        if (known == m_holdings.end()) {
            return;
        }
        for (const Holding* const holding : known->second) {
            if ((holding->uid == m_found.overview.uid) != mine) {
                continue;
            }
            const int holder = holder_of(*holding, mine);
            for (int i = 0; i < holding->count && most > 0; ++i, --most) {
                Gpu gpu{mine ? Gpu::State::mine : Gpu::State::others, holder, {}, {}};
                if (mine) {
                    measure(gpu, holding->job, use.name, static_cast<std::size_t>(i));
                }
                node.gpus.push_back(gpu);
            }
        }
    }

    int holder_of(const Holding& holding, bool mine)
    {
        const auto [place, is_new] =
            m_holders.emplace(holding.job.value, static_cast<int>(m_picture.holders.size()));
        if (!is_new) {
            return place->second;
        }
        tui::Holder holder;
        holder.mine = mine;
        holder.id = holding.called.empty() ? std::to_string(holding.job.value) : holding.called;
        holder.since = holding.since;
        holder.until = holding.until;
        if (const auto run = m_runs.find(holding.job.value); mine && run != m_runs.end()) {
            const RunStatus& status = *run->second;
            holder.id = run_id(status);
            holder.key = lasting_key(status);
            holder.who = status.run ? status.run->request.name : "";
        } else {
            const auto user = m_found.users.find(holding.uid);
            holder.who = user != m_found.users.end() ? user->second : std::to_string(holding.uid);
        }
        m_picture.holders.push_back(std::move(holder));
        return place->second;
    }

    void measure(Gpu& gpu, JobId job, const std::string& node, std::size_t number) const
    {
        const auto run = m_runs.find(job.value);
        const auto samples = run == m_runs.end() ? m_found.newest.end()
                                                 : m_found.newest.find(run->second->key.text());
        if (samples == m_found.newest.end()) {
            return;
        }
        for (const NodeSample& sample : samples->second) {
            if (sample.header.node == node && sample.newest &&
                number < sample.newest->gpus.size()) {
                gpu.busy = busy_share(sample.newest->gpus[number]);
                gpu.memory = memory_share(sample.newest->gpus[number]);
            }
        }
    }

    tui::Picture& m_picture;
    const TopFound& m_found;
    const Time m_now;
    std::map<std::uint32_t, const RunStatus*> m_runs;
    std::map<std::pair<std::string, std::string>, std::vector<const Holding*>> m_holdings;
    std::map<std::uint32_t, int> m_holders;
};

} // namespace

std::optional<double> busy_share(const GpuSample& gpu)
{
    const Reading& busy = gpu[GpuMetric::busy];
    return busy.known() ? std::optional(number(busy) / row(GpuMetric::busy).scale / 100)
                        : std::nullopt;
}

std::optional<double> memory_share(const GpuSample& gpu)
{
    const Reading& used = gpu[GpuMetric::memory_used];
    const Reading& total = gpu[GpuMetric::memory_total];
    return used.known() && total.known() && number(total) > 0
               ? std::optional(number(used) / number(total))
               : std::nullopt;
}

std::optional<int> of_others(const PoolUse& use)
{
    return use.mine && use.pool.in_use ? std::optional(std::max(0, *use.pool.in_use - *use.mine))
                                       : std::nullopt;
}

void add_gpus(tui::Picture& picture, const TopFound& found, Time now)
{
    Gpus(picture, found, now).add();
}

} // namespace gpuq::cli
