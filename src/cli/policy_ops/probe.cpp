// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/probe.h"

#include "cli/base/table_output.h"
#include "cli/policy_ops/in_force.h"
#include "embedded/process.h"
#include "ports/admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr std::chrono::seconds k_patience{30}; // slurmd gives a health check 60 s

std::string this_node(Services& services)
{
    if (const auto name = services.variable("SLURMD_NODENAME")) {
        return *name;
    }
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    const std::string host = name.data();
    return host.substr(0, host.find('.'));
}

using Arguments = std::vector<std::string>;

const Arguments* probe_of(const policy::Policy& policy, const std::string& node)
{
    for (const policy::Pool& pool : policy.pools) {
        const Arguments& nodes = pool.nodes.value;
        const bool here =
            nodes == Arguments{"ALL"} || std::find(nodes.begin(), nodes.end(), node) != nodes.end();
        if (here && pool.lend && pool.lend->probe) {
            return &pool.lend->probe->value;
        }
    }
    return nullptr;
}

/// `idle`, or `busy: why`.
std::string answer_of(const Arguments& probe)
{
    const embedded::Command command{probe, {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}};
    const auto done = embedded::run_command(command, embedded::in(k_patience));
    if (!done) {
        return "busy: " + done.error().text;
    }
    return done->status == 0 ? "idle"
                             : fmt::format("busy: {} reports {}", probe.front(), done->status);
}

} // namespace

Result<int> policy_probe(Invocation& invocation)
{
    if (invocation.arguments.size() > 2) {
        return fail(Error::Kind::usage, "policy probe takes one node");
    }
    const std::string node =
        invocation.arguments.size() == 2 ? invocation.arguments[1] : this_node(invocation.services);
    TRY_ASSIGN(const auto admin, invocation.services.admin());
    TRY_ASSIGN(const auto policy, applied_policy(*admin));
    if (!policy) {
        TRY(print_text("no policy is in force\n"));
        return 0;
    }
    const Arguments* const probe = probe_of(*policy, node);
    const std::string answer =
        probe != nullptr ? answer_of(*probe) : fmt::format("no probe for node {}", node);
    TRY(print_line(answer));
    return 0;
}

} // namespace gpuq::cli
