// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/site_overview.h"

#include "cli/base/output_file.h"
#include "cli/queries/shared_overview_file.h"
#include "core/layout.h"
#include "ports/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

// Three requests every 30 seconds, as many as `gpuq top` of one user makes, and two more every
// three minutes.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_check_again = 180s;
/// A timer may fire a little early.
constexpr auto k_early = 3s;

/// All users get the same data, so that none of it may be hidden from any of them.
Result<void> check_nothing_is_hidden(Cluster& cluster)
{
    TRY_ASSIGN(const Controller controller, cluster.controller());
    return controller.private_data.empty()
               ? Result<void>()
               : fail(Error::Kind::denied,
                      fmt::format("nothing is shared: Slurm hides data from users (PrivateData={})",
                                  fmt::join(controller.private_data, ",")));
}

struct Checked {
    Time at;
    std::vector<ReservedGpus> reserved;
};

Result<Checked> check(Cluster& cluster, const std::vector<Node>& nodes, Time now)
{
    TRY(check_nothing_is_hidden(cluster));
    TRY_ASSIGN(const std::vector<Reservation> reservations, cluster.reservations());
    return Checked{now, reserved_gpus(reservations, nodes)};
}

Result<std::string> new_overview(Cluster& cluster, Clock& clock,
                                 const std::optional<SharedOverview>& last, Time now)
{
    TRY_ASSIGN(const std::string name, cluster.name());
    const auto begin = clock.steady();
    TRY_ASSIGN(const Inventory inventory, cluster.inventory());
    Checked checked;
    if (last && last->checked_at <= now && now - last->checked_at < k_check_again) {
        checked = {last->checked_at, last->overview.reserved};
    } else {
        TRY_ASSIGN(checked, check(cluster, inventory.nodes, now));
    }
    TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
    if (!all.complete) {
        return fail(Error::Kind::denied,
                    "nothing is shared: Slurm hides the jobs of other users from this one");
    }
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock.steady() - begin);
    return shared_overview_text(name, inventory, all, std::move(checked.reserved), checked.at, now,
                                took, last ? last->overview.run_times : RunTimes{});
}

} // namespace

Result<int> write_shared_overview(Services& services, const std::string& directory)
{
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const std::string name, cluster->name());
    const std::string path = layout::shared_overview(directory, name);
    TRY_ASSIGN(const OutputFile file, OutputFile::at(path));
    if (!file.was_read()) { // asked before this process reads it
        return 0;
    }
    const Time now = services.clock().now();
    const auto last = read_shared_overview(services, path, name);
    if (last && *last->overview.at <= now &&
        now - *last->overview.at < shared_pause(last->overview) - k_early) {
        return 0;
    }
    const auto text = new_overview(*cluster, services.clock(), last, now);
    if (!text) {
        if (text.error().kind == Error::Kind::denied) {
            file.remove();
        }
        return text.error();
    }
    TRY(file.write(*text, OutputFile::Readers::all));
    return 0;
}

} // namespace gpuq::cli
