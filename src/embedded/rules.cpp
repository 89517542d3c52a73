// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/rules.h"

#include "policy/objects.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

namespace gpuq::embedded {
namespace {

using policy::Object;
using Command = std::vector<std::string>;

/// Name of a limit in objects.h and in `sacctmgr set`.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> k_limits{
    {{"MaxTRESPU", "MaxTRESPU"},
     {"MaxJobsPU", "MaxJobsPU"},
     {"MaxSubmitPU", "MaxSubmitJobsPU"},
     {"MaxTRESPA", "MaxTRESPA"},
     {"MaxJobsPA", "MaxJobsPA"},
     {"MaxSubmitPA", "MaxSubmitJobsPA"},
     {"GrpTRES", "GrpTRES"},
     {"GrpJobs", "GrpJobs"},
     {"GrpSubmit", "GrpSubmitJobs"},
     {"MaxTRES", "MaxTRESPerJob"},
     {"MaxTRESRunMinsPU", "MaxTRESRunMinsPU"},
     {"MaxTRESRunMinsPA", "MaxTRESRunMinsPA"},
     {"GrpTRESRunMins", "GrpTRESRunMins"}}};

void add_qos(const Object& qos, std::vector<Command>& commands)
{
    commands.push_back({"add", "qos", qos.name});
    Command set{"modify", "qos", qos.name, "set"};
    for (const auto& [name, word] : k_limits) {
        const auto found = qos.fields.find(std::string(name));
        if (found != qos.fields.end()) {
            set.push_back(fmt::format("{}={}", word, found->second));
        }
    }
    if (qos.fields.contains("Flags")) {
        set.push_back("Flags=" + qos.fields.at("Flags"));
    }
    if (set.size() > 4) {
        commands.push_back(std::move(set));
    }
}

void add_access(const Object& access, const std::string& cluster, std::vector<Command>& commands)
{
    for (const auto& [kind, entity] :
         {std::pair("accounts", "account"), std::pair("users", "user")}) {
        if (!access.fields.at(kind).empty()) {
            commands.push_back({"modify", entity, "where", "name=" + access.fields.at(kind),
                                "cluster=" + cluster, "set", "qos+=" + access.name});
        }
    }
}

std::set<std::string> accounts_in(const policy::Policy& policy)
{
    std::set<std::string> names;
    for (const policy::Queue& queue : policy.queues) {
        names.insert(queue.access.accounts.begin(), queue.access.accounts.end());
    }
    for (const policy::Course& course : policy.courses) {
        names.insert(course.accounts.begin(), course.accounts.end());
    }
    if (policy.reserve) {
        names.insert(policy.reserve->accounts.begin(), policy.reserve->accounts.end());
    }
    for (const policy::FairShare::Part& part : policy.fair_share.shares) {
        names.insert(part.account);
    }
    return names;
}

} // namespace

std::vector<Command> accounting_commands(const policy::Policy& policy, const std::string& cluster)
{
    std::vector<Command> commands;
    for (const std::string& name : accounts_in(policy)) {
        commands.push_back({"add", "account", name, "Description=" + name, "Organization=local"});
    }
    for (const Object& object : objects_of(policy)) {
        if (object.kind == Object::Kind::qos) {
            add_qos(object, commands);
        } else if (object.kind == Object::Kind::access) {
            add_access(object, cluster, commands);
        } else if (object.kind == Object::Kind::share) {
            commands.push_back({"modify", "account", "where", "name=" + object.name,
                                "cluster=" + cluster, "set",
                                "fairshare=" + object.fields.at("fairshare")});
        }
    }
    return commands;
}

} // namespace gpuq::embedded
