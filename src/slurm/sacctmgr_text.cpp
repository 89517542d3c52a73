// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sacctmgr_text.h"

#include "core/strings.h"
#include "slurm/field_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <set>

namespace gpuq::slurm {
namespace {

using Kind = SlurmObject::Kind;

std::map<std::string, std::string> tres_in(std::string_view list)
{
    std::map<std::string, std::string> amounts;
    for (const std::string_view item : split(list, ",")) {
        const auto sign = item.rfind('=');
        if (sign != std::string_view::npos) {
            amounts.emplace(item.substr(0, sign), item.substr(sign + 1));
        }
    }
    return amounts;
}

/// A TRES that is not named keeps its limit, so limits that are no longer wanted must be reset.
std::string tres_argument(const QosField& field, std::string_view actual, std::string_view desired)
{
    auto amounts = tres_in(desired);
    for (const auto& [name, ignored] : tres_in(actual)) {
        amounts.emplace(name, field.reset);
    }
    std::vector<std::string> items;
    for (const auto& [name, amount] : amounts) {
        items.push_back(fmt::format("{}={}", name, amount));
    }
    return fmt::format("{}={}", field.keyword, fmt::join(items, ","));
}

std::string qos_value(const QosField& field, std::string_view shown)
{
    switch (field.form) {
    case QosField::Form::tres:
    case QosField::Form::flags:
        return sorted(shown);
    case QosField::Form::time:
        return minutes_in(std::string(shown));
    default:
        return std::string(shown);
    }
}

constexpr std::array<std::string_view, 12> k_association_limits = {
    "GrpTRES", "GrpTRESMins",    "GrpTRESRunMins", "GrpJobs", "GrpSubmit", "GrpWall",
    "MaxTRES", "MaxTRESPerNode", "MaxTRESMins",    "MaxJobs", "MaxSubmit", "MaxWall"};
constexpr std::size_t k_first_limit = 5;
constexpr std::size_t k_first_other = k_first_limit + k_association_limits.size();
constexpr std::array<std::string_view, 4> k_other_association_fields = {
    "DefaultQOS", "Priority", "GrpJobsAccrue", "MaxJobsAccrue"};

struct Holders {
    std::set<std::string> accounts;
    std::map<std::string, std::set<std::string>> users; ///< each with the accounts
    std::set<std::string> without;
};

std::string user_name(const QosAssociation& association)
{
    return association.user.empty() ? association.account
                                    : association.user + "@" + association.account;
}

} // namespace

const std::vector<QosField>& qos_fields()
{
    using Form = QosField::Form;
    static const std::vector<QosField> k_fields = {
        {"Priority", "Priority", Form::number, "0", "0"},
        {"GraceTime", "GraceTime", Form::text, "00:00:00", "-1"},
        {"Preempt", "Preempt", Form::text, "", ""},
        {"PreemptExemptTime", "PreemptExemptTime", Form::text, "", "-1"},
        {"PreemptMode", "PreemptMode", Form::text, "cluster", "cluster"},
        {"Flags", "Flags", Form::flags, "", ""},
        {"UsageThres", "UsageThreshold", Form::number, "", "-1"},
        {"UsageFactor", "UsageFactor", Form::number, "1.000000", "1"},
        {"LimitFactor", "LimitFactor", Form::number, "", "-1"},
        {"GrpTRES", "GrpTRES", Form::tres, "", "-1"},
        {"GrpTRESMins", "GrpTRESMins", Form::tres, "", "-1"},
        {"GrpTRESRunMins", "GrpTRESRunMins", Form::tres, "", "-1"},
        {"GrpJobs", "GrpJobs", Form::number, "", "-1"},
        {"GrpJobsAccrue", "GrpJobsAccrue", Form::number, "", "-1"},
        {"GrpSubmit", "GrpSubmitJobs", Form::number, "", "-1"},
        {"GrpWall", "GrpWall", Form::time, "", "-1"},
        {"MaxTRES", "MaxTRESPerJob", Form::tres, "", "-1"},
        {"MaxTRESPerNode", "MaxTRESPerNode", Form::tres, "", "-1"},
        {"MaxTRESMins", "MaxTRESMinsPerJob", Form::tres, "", "-1"},
        {"MaxWall", "MaxWall", Form::time, "", "-1"},
        {"MaxTRESPU", "MaxTRESPerUser", Form::tres, "", "-1"},
        {"MaxJobsPU", "MaxJobsPerUser", Form::number, "", "-1"},
        {"MaxJobsAccruePU", "MaxJobsAccruePerUser", Form::number, "", "-1"},
        {"MaxSubmitPU", "MaxSubmitJobsPerUser", Form::number, "", "-1"},
        {"MaxTRESPA", "MaxTRESPerAccount", Form::tres, "", "-1"},
        {"MaxJobsPA", "MaxJobsPerAccount", Form::number, "", "-1"},
        {"MaxJobsAccruePA", "MaxJobsAccruePerAccount", Form::number, "", "-1"},
        {"MaxSubmitPA", "MaxSubmitJobsPerAccount", Form::number, "", "-1"},
        // 22.05 accepts only the short names of these.
        {"MaxTRESRunMinsPU", "MaxTRESRunMinsPU", Form::tres, "", "-1"},
        // In 22.05, -1 leaves the limit unchanged; this is the value that it stores for no limit.
        {"MaxTRESRunMinsPA", "MaxTRESRunMinsPA", Form::tres, "", "18446744073709551614"},
        {"MinTRES", "MinTRESPerJob", Form::tres, "", "-1"},
    };
    return k_fields;
}

std::vector<SlurmObject> qos_in(std::string_view printed)
{
    std::vector<SlurmObject> list;
    for (const std::string_view line : split(printed, "\n")) {
        const auto cells = split(line, "|");
        if (cells.size() != qos_fields().size() + 1) {
            continue;
        }
        SlurmObject qos{Kind::qos, std::string(cells[0]), {}, 0};
        for (std::size_t i = 0; i < qos_fields().size(); ++i) {
            const QosField& field = qos_fields()[i];
            if (cells[i + 1] != field.unset) {
                qos.fields.emplace(field.name, qos_value(field, cells[i + 1]));
            }
        }
        list.push_back(std::move(qos));
    }
    return list;
}

std::vector<std::string> qos_arguments(const SlurmObject& actual, const SlurmObject& desired)
{
    std::vector<std::string> arguments;
    for (const QosField& field : qos_fields()) {
        const auto value = [&](const SlurmObject& object) {
            const auto found = object.fields.find(std::string(field.name));
            return found == object.fields.end() ? std::string() : found->second;
        };
        const std::string now = value(actual);
        const std::string then = value(desired);
        if (now == then) {
            continue;
        }
        if (field.form == QosField::Form::tres) {
            arguments.push_back(tres_argument(field, now, then));
        } else if (field.form == QosField::Form::flags) {
            flag_arguments(field.keyword, now, then, arguments);
        } else {
            arguments.push_back(fmt::format("{}={}", field.keyword,
                                            then.empty() ? field.reset : std::string_view(then)));
        }
    }
    return arguments;
}

std::vector<QosAssociation> associations_in(std::string_view printed)
{
    std::vector<QosAssociation> list;
    for (const std::string_view line : split(printed, "\n")) {
        const auto cells = split(line, "|");
        // An association for one partition does not apply to the others.
        if (cells.size() != k_first_other + k_other_association_fields.size() ||
            !cells[2].empty()) {
            continue;
        }
        QosAssociation one{std::string(cells[0]),
                           std::string(cells[1]),
                           std::string(cells[3]),
                           std::string(cells[4]),
                           {}};
        for (std::size_t i = 0; i < k_association_limits.size(); ++i) {
            if (const auto value = cells[k_first_limit + i]; !value.empty()) {
                one.limits.push_back(fmt::format("{}={}", k_association_limits[i], value));
            }
        }
        list.push_back(std::move(one));
    }
    return list;
}

std::string association_format()
{
    return fmt::format("format=account,user,partition,share,qos,{},{}",
                       fmt::join(k_association_limits, ","),
                       fmt::join(k_other_association_fields, ","));
}

std::vector<std::string> other_associations_in(std::string_view printed)
{
    std::vector<std::string> texts;
    for (const std::string_view line : split(printed, "\n")) {
        const auto cells = split(line, "|");
        if (cells.size() != k_first_other + k_other_association_fields.size()) {
            if (!line.empty()) {
                texts.push_back(fmt::format("association {}", line));
            }
            continue;
        }
        const bool of_user = !cells[1].empty();
        std::string who = of_user ? fmt::format("association {}@{}", cells[1], cells[0])
                                  : fmt::format("account {}", cells[0]);
        const auto add = [&](std::string_view field, std::string_view value) {
            if (!value.empty()) {
                texts.push_back(fmt::format("{}: {}={}", who, field, value));
            }
        };
        if (!cells[2].empty()) {
            who += fmt::format(" in partition {}", cells[2]);
            add("Share", cells[3]);
            add("QOS", cells[4]);
            for (std::size_t i = 0; i < k_association_limits.size(); ++i) {
                add(k_association_limits[i], cells[k_first_limit + i]);
            }
        }
        for (std::size_t i = 0; i < k_other_association_fields.size(); ++i) {
            add(k_other_association_fields[i], cells[k_first_other + i]);
        }
    }
    return texts;
}

std::vector<SlurmObject> accesses_in(const std::vector<QosAssociation>& associations)
{
    std::map<std::string, Holders> holders;
    std::map<std::string, std::size_t> accounts_of;
    for (const QosAssociation& one : associations) {
        accounts_of[one.user] += 1;
        for (std::string_view qos : split(one.qos, ",")) {
            const bool taken = qos.starts_with('-');
            qos.remove_prefix(taken || qos.starts_with('+') ? 1 : 0);
            Holders& holder = holders[std::string(qos)];
            if (taken) {
                holder.without.insert(user_name(one));
            } else if (one.user.empty()) {
                holder.accounts.insert(one.account);
            } else {
                holder.users[one.user].insert(one.account);
            }
        }
    }
    holders.erase("");
    std::vector<SlurmObject> list;
    for (const auto& [qos, holder] : holders) {
        std::set<std::string> users;
        for (const auto& [user, accounts] : holder.users) {
            for (const std::string& account : accounts) {
                users.insert(accounts.size() == accounts_of[user] ? user : user + "@" + account);
            }
        }
        SlurmObject access{Kind::access,
                           qos,
                           {{"accounts", fmt::format("{}", fmt::join(holder.accounts, ","))},
                            {"users", fmt::format("{}", fmt::join(users, ","))}},
                           0};
        if (!holder.without.empty()) {
            access.fields["without"] = fmt::format("{}", fmt::join(holder.without, ","));
        }
        list.push_back(std::move(access));
    }
    return list;
}

std::vector<SlurmObject> shares_in(const std::vector<QosAssociation>& associations)
{
    std::vector<SlurmObject> shares;
    for (const QosAssociation& one : associations) {
        if (one.account != "root") {
            shares.push_back({Kind::share, user_name(one), {{"fairshare", one.share}}, 0});
        }
    }
    return shares;
}

std::vector<AssociationLimit> limits_in(const std::vector<QosAssociation>& associations)
{
    std::vector<AssociationLimit> limits;
    for (const QosAssociation& one : associations) {
        for (const std::string& limit : one.limits) {
            limits.push_back({user_name(one), limit});
        }
    }
    return limits;
}

std::vector<std::string> gpu_limit_arguments(const std::vector<AssociationLimit>& actual,
                                             const SlurmObject& desired)
{
    std::map<std::string, std::map<std::string, std::string>> amounts; // by limit, then by TRES
    for (const AssociationLimit& one : actual) {
        const auto sign = one.limit.find('=');
        for (const auto& [tres, ignored] : tres_in(std::string_view(one.limit).substr(sign + 1))) {
            if (one.who == desired.name && tres.starts_with("gres/gpu")) {
                amounts[one.limit.substr(0, sign)][tres] = "-1";
            }
        }
    }
    for (const auto& [name, value] : desired.fields) {
        for (const auto& [tres, amount] : tres_in(value)) {
            amounts[name][tres] = amount;
        }
    }
    std::vector<std::string> arguments;
    for (const auto& [name, items] : amounts) {
        for (const auto& [tres, amount] : items) {
            arguments.push_back(fmt::format("{}={}={}", name, tres, amount));
        }
    }
    return arguments;
}

} // namespace gpuq::slurm
