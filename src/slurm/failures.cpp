// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/list.h"
#include "slurm/query.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>

namespace gpuq {
namespace slurm {
namespace {

std::time_t seconds_of(Time time)
{
    return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

} // namespace

/// Events of the cluster itself only determine the start of the record.
Result<NodeHistory> answer(const FailuresQuery& query)
{
    const MessageCapture capture{"node failures in accounting"};
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    if (connection == nullptr) {
        return unanswered(QueryKind::failures, errno);
    }
    const std::time_t from = seconds_of(query.from);
    const std::time_t to = seconds_of(query.to);
    std::string cluster = cluster_name();
    const OwnedList clusters(slurm_list_create(nullptr));
    slurm_list_append(clusters.get(), cluster.data());
    slurmdb_event_cond_t condition{};
    condition.cluster_list = clusters.get();
    condition.period_start = from;
    condition.period_end = to;
    errno = 0;
    const OwnedList list(slurmdb_events_get(connection, &condition));
    if (!list) {
        return unanswered(QueryKind::failures, errno);
    }
    std::time_t since = to;
    NodeHistory history;
    for_each<slurmdb_event_rec_t>(list.get(), [&](const slurmdb_event_rec_t& event) {
        since = std::min(since, std::max(event.period_start, from));
        const bool is_of_node = event.node_name != nullptr && *event.node_name != '\0';
        const bool is_down = (event.state & NODE_STATE_BASE) == NODE_STATE_DOWN;
        if (is_of_node && is_down && event.period_start >= from && event.period_start < to) {
            history.failures.push_back(
                {event.node_name, Time{std::chrono::seconds{event.period_start}}});
        }
    });
    slurmdb_connection_close(&connection);
    history.since = Time{std::chrono::seconds{since}};
    return history;
}

} // namespace slurm

Result<NodeHistory> SlurmAccounting::node_failures(Time from, Time to)
{
    return slurm::ask(m_program, slurm::FailuresQuery{from, to});
}

} // namespace gpuq
