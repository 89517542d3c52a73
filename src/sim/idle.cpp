// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/idle.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace gpuq::sim {
namespace {

/// At `time`, a piece becomes eligible, starts or ends, or something happens to the machine.
struct Turn {
    enum class Kind : std::uint32_t { ends, starts, waits, hours, node_fails, node_returns };
    Seconds time{0};
    Kind kind = Kind::waits;
    std::uint32_t index = 0; ///< of the piece, the hours, or the outage
};

/// Pending jobs that may use the same GPUs.
struct Group {
    std::vector<std::size_t> nodes;
    int gpus = 1;   ///< on one node, at least
    int shares = 0; ///< of one GPU; then `gpus` is 0
    int waiting = 0;
};

/// The GPUs of a node without a job.
struct Free {
    int gpus = 0; ///< of one whose GPUs are not shared
    int per_gpu = 0;
    GpuParts parts{};

    /// Those that a job of the group could have; 0 if it does not fit.
    double allowed(const Group& group) const
    {
        if (group.shares > 0) {
            return parts.most() >= group.shares ? static_cast<double>(parts.sum()) / per_gpu : 0;
        }
        const int whole = per_gpu > 0 ? parts.whole(per_gpu) : gpus;
        return whole >= group.gpus ? whole : 0;
    }
};

class Sweep {
public:
    Sweep(const Machine& machine, const std::vector<Job>& jobs, const Course& course)
        : m_machine(machine)
        , m_partitions(&machine.partitions)
        , m_jobs(jobs)
        , m_course(course)
    {
        for (const Node& node : machine.nodes) {
            m_free.push_back({node.gpus, node.per_gpu,
                              node.per_gpu > 0 ? GpuParts(node.gpus, node.per_gpu) : GpuParts()});
            m_gpus += node.gpus;
        }
        m_idle = m_gpus;
        m_outages.resize(machine.nodes.size());
    }

    GpuTime run(Seconds end)
    {
        Seconds now{0};
        for (const Turn& turn : turns()) {
            const Seconds until = std::min(turn.time, end);
            if (until > now) {
                add(static_cast<double>((until - now).count()));
                now = until;
            }
            take(turn);
        }
        m_time.all = static_cast<double>(m_gpus) * static_cast<double>(end.count());
        return m_time;
    }

private:
    std::vector<Turn> turns() const
    {
        std::vector<Turn> result;
        result.reserve(m_course.pieces.size() * 3 + m_machine.changes.size() +
                       m_machine.outages.size() * 2);
        for (std::uint32_t i = 0; i < m_course.pieces.size(); ++i) {
            const Piece& piece = m_course.pieces[i];
            result.push_back({piece.eligible, Turn::Kind::waits, i});
            result.push_back({piece.start, Turn::Kind::starts, i});
            result.push_back({piece.end, Turn::Kind::ends, i});
        }
        for (const HoursFrom& change : m_machine.changes) {
            result.push_back(
                {change.time, Turn::Kind::hours, static_cast<std::uint32_t>(change.hours)});
        }
        for (std::uint32_t i = 0; i < m_machine.outages.size(); ++i) {
            result.push_back({m_machine.outages[i].start, Turn::Kind::node_fails, i});
            result.push_back({m_machine.outages[i].end, Turn::Kind::node_returns, i});
        }
        // Stable: a piece of zero length starts before it ends. Otherwise ends come before starts,
        // since pieces are in the order of their ends.
        std::stable_sort(result.begin(), result.end(),
                         [](const Turn& a, const Turn& b) { return a.time < b.time; });
        return result;
    }

    void take(const Turn& turn)
    {
        switch (turn.kind) {
        case Turn::Kind::hours:
            m_partitions = &m_machine.hours[turn.index].partitions;
            for (auto& [key, group] : m_groups) {
                group.nodes = nodes_for(std::get<0>(key), std::get<1>(key));
            }
            return;
        case Turn::Kind::node_fails:
            change_outages(m_machine.outages[turn.index].node, 1);
            return;
        case Turn::Kind::node_returns:
            change_outages(m_machine.outages[turn.index].node, -1);
            return;
        case Turn::Kind::ends:
        case Turn::Kind::starts:
        case Turn::Kind::waits:
            take_piece(turn);
        }
    }

    void change_outages(int index, int change)
    {
        const auto node = static_cast<std::size_t>(index);
        const bool was_down = m_outages[node] > 0;
        m_outages[node] += change;
        const int gpus = m_machine.nodes[node].gpus;
        m_down += (m_outages[node] > 0) == was_down ? 0 : was_down ? -gpus : gpus;
    }

    void take_piece(const Turn& turn)
    {
        const Piece& piece = m_course.pieces[turn.index];
        Group& group = group_of(piece);
        if (turn.kind == Turn::Kind::waits) {
            ++group.waiting;
            ++m_waiting;
            return;
        }
        const int sign = turn.kind == Turn::Kind::starts ? -1 : 1;
        if (sign < 0) {
            --group.waiting;
            --m_waiting;
        }
        for (std::size_t i = 0; i < piece.nodes.size(); ++i) {
            Free& free = m_free[static_cast<std::size_t>(piece.nodes[i])];
            free.gpus += sign * piece.gpus[i];
            if (free.per_gpu > 0) {
                sign > 0 ? free.parts += piece.parts[i] : free.parts -= piece.parts[i];
            }
            m_idle += sign * gpus_on(m_machine, piece, i);
        }
    }

    Group& group_of(const Piece& piece)
    {
        const Job& job = m_jobs[piece.job];
        const auto& partitions =
            piece.link > 1 && job.chain ? job.chain->partitions : job.partitions;
        const int gpus = piece.gpus.empty() ? 1 : piece.gpus.back();
        const auto [found, made] = m_groups.try_emplace({partitions, job.model, gpus, job.shares});
        if (made) {
            found->second.gpus = gpus;
            found->second.shares = job.shares;
            found->second.nodes = nodes_for(partitions, job.model);
        }
        return found->second;
    }

    std::vector<std::size_t> nodes_for(const std::vector<int>& partitions,
                                       const std::string& model) const
    {
        std::vector<std::size_t> nodes;
        for (std::size_t node = 0; node < m_machine.nodes.size(); ++node) {
            if (serves(partitions, model, node)) {
                nodes.push_back(node);
            }
        }
        return nodes;
    }

    bool serves(const std::vector<int>& partitions, const std::string& model,
                std::size_t node) const
    {
        return (model.empty() || m_machine.nodes[node].model == model) &&
               std::any_of(partitions.begin(), partitions.end(), [&](int index) {
                   const Partition& partition = (*m_partitions)[static_cast<std::size_t>(index)];
                   const auto& nodes = partition.nodes;
                   return !partition.closed && std::find(nodes.begin(), nodes.end(),
                                                         static_cast<int>(node)) != nodes.end();
               });
    }

    void add(double seconds)
    {
        m_time.used += seconds * (m_gpus - m_idle);
        if (m_waiting == 0) {
            return;
        }
        m_time.idle_while_waiting += seconds * (m_idle - m_down);
        m_time.idle_while_allowed += seconds * allowed();
    }

    double allowed() const
    {
        std::vector<double> gpus(m_free.size()); // by node
        for (const auto& [key, group] : m_groups) {
            if (group.waiting == 0) {
                continue;
            }
            for (const std::size_t node : group.nodes) {
                gpus[node] =
                    m_outages[node] > 0 ? 0 : std::max(gpus[node], m_free[node].allowed(group));
            }
        }
        return std::accumulate(gpus.begin(), gpus.end(), 0.0);
    }

    const Machine& m_machine;
    const std::vector<Partition>* m_partitions; ///< at the current hours
    const std::vector<Job>& m_jobs;
    const Course& m_course;
    std::vector<Free> m_free;   ///< by node
    std::vector<int> m_outages; ///< by node
    int m_gpus = 0;
    int m_down = 0; ///< GPUs of nodes that are down
    double m_idle = 0;
    int m_waiting = 0;
    /// By partitions, model, GPUs and shares.
    std::map<std::tuple<std::vector<int>, std::string, int, int>, Group> m_groups;
    GpuTime m_time;
};

} // namespace

GpuTime gpu_time(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
                 Seconds end)
{
    return Sweep(machine, jobs, course).run(end);
}

} // namespace gpuq::sim
