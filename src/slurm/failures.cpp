// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/accounting.h"
#include "slurm/bounded.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sstream>
#include <string>

namespace gpuq {
namespace {

constexpr std::chrono::seconds k_patience{10};

/// Runs in the child. Returns `ok`, a line `since TIME`, and `TIME NODE` for each node that went
/// down; or `error CODE`. Events of the cluster itself only determine the start of the record.
std::string failures_query(std::time_t from, std::time_t to)
{
    const slurm::MessageCapture capture{"node failures in accounting"};
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    if (connection == nullptr) {
        return fmt::format("error {}", errno);
    }
    std::string cluster = slurm::cluster_name();
    const slurm::OwnedList clusters(slurm_list_create(nullptr));
    slurm_list_append(clusters.get(), cluster.data());
    slurmdb_event_cond_t condition{};
    condition.cluster_list = clusters.get();
    condition.period_start = from;
    condition.period_end = to;
    errno = 0;
    const slurm::OwnedList list(slurmdb_events_get(connection, &condition));
    if (!list) {
        return fmt::format("error {}", errno);
    }
    std::time_t since = to;
    std::string failures;
    slurm::for_each<slurmdb_event_rec_t>(list.get(), [&](const slurmdb_event_rec_t& event) {
        since = std::min(since, std::max(event.period_start, from));
        const bool is_of_node = event.node_name != nullptr && *event.node_name != '\0';
        const bool is_down = (event.state & NODE_STATE_BASE) == NODE_STATE_DOWN;
        if (is_of_node && is_down && event.period_start >= from && event.period_start < to) {
            failures += fmt::format("{} {}\n", event.period_start, event.node_name);
        }
    });
    slurmdb_connection_close(&connection);
    return fmt::format("ok\nsince {}\n{}", since, failures);
}

} // namespace

Result<NodeHistory> SlurmAccounting::node_failures(Time from, Time to)
{
    TRY(slurm::needs_accounting());
    const auto seconds = [](Time time) {
        return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
    };
    const auto answer =
        slurm::in_a_child([&] { return failures_query(seconds(from), seconds(to)); }, k_patience);
    if (!answer || !answer->starts_with("ok\nsince ")) {
        return slurm::no_accounting_answer(answer.value_or(""));
    }
    std::istringstream lines(answer->substr(9));
    std::int64_t at = 0;
    lines >> at;
    NodeHistory history{Time{std::chrono::seconds{at}}, {}};
    for (std::string node; lines >> at >> node;) {
        history.failures.push_back({node, Time{std::chrono::seconds{at}}});
    }
    return history;
}

} // namespace gpuq
