// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/admin_text.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace gpuq::slurm {
namespace {

using Kind = SlurmObject::Kind;
using Fields = std::map<std::string, std::string>;

std::string sorted(std::string_view list)
{
    std::set<std::string_view> names;
    for (const std::string_view name : split(list, ",")) {
        if (!name.empty()) {
            names.insert(name);
        }
    }
    return fmt::format("{}", fmt::join(names, ","));
}

/// `Key=value Key=value`
Fields fields_in(std::string_view line)
{
    Fields fields;
    for (const std::string_view word : split(line, " ")) {
        const auto sign = word.find('=');
        if (sign != std::string_view::npos) {
            fields.emplace(word.substr(0, sign), word.substr(sign + 1));
        }
    }
    return fields;
}

std::optional<long> number_in(std::string_view text)
{
    long number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && rest == text.data() + text.size() ? std::optional(number)
                                                                     : std::nullopt;
}

/// `1-02:30:00` in minutes; other text is returned unchanged.
std::string minutes_in(const std::string& text)
{
    const auto dash = text.find('-');
    const auto days = dash == std::string::npos ? std::optional(0L)
                                                : number_in(std::string_view(text).substr(0, dash));
    const auto parts =
        split(std::string_view(text).substr(dash == std::string::npos ? 0 : dash + 1), ":");
    if (!days || parts.size() != 3) {
        return text;
    }
    const auto hours = number_in(parts[0]);
    const auto minutes = number_in(parts[1]);
    return hours && minutes ? std::to_string((*days * 24 + *hours) * 60 + *minutes) : text;
}

enum class Form { text, time, list };
struct PartitionField {
    std::string_view name;  ///< in slurm.conf
    std::string_view shown; ///< in scontrol's output
    std::string_view unset;
    Form form = Form::text;
};

constexpr std::array k_partition_fields = {
    PartitionField{"AllowAccounts", "AllowAccounts", "ALL", Form::list},
    PartitionField{"AllowGroups", "AllowGroups", "ALL", Form::list},
    PartitionField{"AllowQos", "AllowQos", "ALL", Form::list},
    PartitionField{"AllocNodes", "AllocNodes", "ALL"},
    PartitionField{"Alternate", "Alternate", "(null)"},
    PartitionField{"CpuBind", "CpuBind", ""},
    PartitionField{"DefMemPerCPU", "DefMemPerCPU", ""},
    PartitionField{"DefMemPerNode", "DefMemPerNode", "UNLIMITED"},
    PartitionField{"Default", "Default", "NO"},
    PartitionField{"DefaultTime", "DefaultTime", "NONE", Form::time},
    PartitionField{"DenyAccounts", "DenyAccounts", "(null)", Form::list},
    PartitionField{"DenyQos", "DenyQos", "(null)", Form::list},
    PartitionField{"DisableRootJobs", "DisableRootJobs", "NO"},
    PartitionField{"ExclusiveUser", "ExclusiveUser", "NO"},
    PartitionField{"GraceTime", "GraceTime", "0"},
    PartitionField{"Hidden", "Hidden", "NO"},
    PartitionField{"LLN", "LLN", "NO"},
    PartitionField{"MaxCPUsPerNode", "MaxCPUsPerNode", "UNLIMITED"},
    PartitionField{"MaxMemPerCPU", "MaxMemPerCPU", ""},
    PartitionField{"MaxMemPerNode", "MaxMemPerNode", "UNLIMITED"},
    PartitionField{"MaxNodes", "MaxNodes", "UNLIMITED"},
    PartitionField{"MaxTime", "MaxTime", "UNLIMITED", Form::time},
    PartitionField{"MinNodes", "MinNodes", "0"},
    PartitionField{"Nodes", "Nodes", "(null)"},
    PartitionField{"OverSubscribe", "OverSubscribe", "NO"},
    PartitionField{"OverTimeLimit", "OverTimeLimit", "NONE"},
    PartitionField{"PreemptMode", "PreemptMode", ""},
    PartitionField{"PriorityJobFactor", "PriorityJobFactor", "1"},
    PartitionField{"PriorityTier", "PriorityTier", "1"},
    PartitionField{"QOS", "QoS", "N/A"},
    PartitionField{"ReqResv", "ReqResv", "NO"},
    PartitionField{"RootOnly", "RootOnly", "NO"},
    PartitionField{"State", "State", "UP"},
    PartitionField{"TRESBillingWeights", "TRESBillingWeights", "", Form::list},
};

std::string in_form(const std::string& value, Form form)
{
    if (form == Form::time) {
        return minutes_in(value);
    }
    return form == Form::list ? sorted(value) : value;
}

SlurmObject partition_of(const Fields& shown)
{
    SlurmObject partition{Kind::partition, shown.at("PartitionName"), {}, 0};
    for (const PartitionField& field : k_partition_fields) {
        const auto found = shown.find(std::string(field.shown));
        if (found != shown.end() && found->second != field.unset) {
            partition.fields.emplace(field.name, in_form(found->second, field.form));
        }
    }
    const auto defaults = shown.find("JobDefaults"); // DefCpuPerGPU=4,DefMemPerGPU=1024
    if (defaults != shown.end()) {
        for (const std::string_view item : split(defaults->second, ",")) {
            partition.fields.merge(fields_in(item));
        }
    }
    return partition;
}

SlurmObject reservation_of(const Fields& shown)
{
    SlurmObject reservation{Kind::reservation, shown.at("ReservationName"), {}, 0};
    const auto value = [&](const std::string& name) {
        const auto found = shown.find(name);
        return found == shown.end() || found->second == "(null)" ? std::string() : found->second;
    };
    std::set<std::string> flags;
    const std::string all_flags = value("Flags");
    for (const std::string_view flag : split(all_flags, ",")) {
        if (!flag.empty() && flag != "SPEC_NODES" && flag != "ALL_NODES") {
            flags.emplace(flag);
        }
    }
    reservation.fields = {{"Nodes", value("Nodes")},
                          {"StartTime", value("StartTime")},
                          {"Duration", minutes_in(value("Duration"))},
                          {"Flags", fmt::format("{}", fmt::join(flags, ","))},
                          {"Users", sorted(value("Users"))},
                          {"Accounts", sorted(value("Accounts"))}};
    for (const char* const name :
         {"PartitionName", "Features", "Groups", "Licenses", "MaxStartDelay", "BurstBuffer"}) {
        if (!value(name).empty()) {
            reservation.fields[name] = value(name);
        }
    }
    return reservation;
}

template <typename Make>
std::vector<SlurmObject> objects_in(std::string_view printed, std::string_view head, Make make)
{
    std::vector<SlurmObject> objects;
    for (const std::string_view line : split(printed, "\n")) {
        if (line.starts_with(head)) {
            objects.push_back(make(fields_in(line)));
        }
    }
    return objects;
}

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

void flag_arguments(std::string_view keyword, std::string_view actual, std::string_view desired,
                    std::vector<std::string>& arguments)
{
    const auto add = [&](std::string_view from, std::string_view besides, char sign) {
        for (const std::string_view flag : split(from, ",")) {
            const auto others = split(besides, ",");
            if (!flag.empty() && std::find(others.begin(), others.end(), flag) == others.end()) {
                arguments.push_back(fmt::format("{}{}={}", keyword, sign, flag));
            }
        }
    };
    add(actual, desired, '-');
    add(desired, actual, '+');
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

/// Fields of a partition that follow from others, or are the state of the moment.
constexpr std::array<std::string_view, 6> k_derived = {"PartitionName", "JobDefaults", "TotalCPUs",
                                                       "TotalNodes",    "TRES",        "NodeSets"};

bool is_default(std::string_view value)
{
    constexpr std::array<std::string_view, 8> k_defaults = {"",          "NO",  "NONE", "(null)",
                                                            "UNLIMITED", "N/A", "0",    "INFINITE"};
    return std::find(k_defaults.begin(), k_defaults.end(), value) != k_defaults.end();
}

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

std::string few_of(const std::vector<std::string>& names)
{
    constexpr std::ptrdiff_t k_named = 4;
    const auto more = std::ssize(names) - k_named;
    return more <= 0 ? fmt::format("{}", fmt::join(names, ","))
                     : fmt::format("{} and {} more",
                                   fmt::join(names.begin(), names.begin() + k_named, ","), more);
}

/// The value in the notation of Slurm 22.05, which slurm.conf accepts in all releases; 24.11 prints
/// some values differently.
std::string setting_value(std::string_view name, std::string_view printed)
{
    if (printed == "(null)") {
        return name == "PreemptType" ? "preempt/none" : "";
    }
    return std::string(printed == "yes" ? "Yes" : printed == "no" ? "No" : printed);
}

} // namespace

std::vector<SlurmObject> settings_in(std::string_view printed)
{
    std::vector<SlurmObject> settings;
    for (const std::string_view line : split(printed, "\n")) {
        const auto sign = line.find(" = ");
        const std::string_view name = trimmed(line.substr(0, line.find('=')));
        if (line.find('=') != std::string_view::npos && !name.empty()) {
            const std::string_view value =
                sign == std::string_view::npos ? "" : trimmed(line.substr(sign + 3));
            settings.push_back(
                {Kind::setting, std::string(name), {{"value", setting_value(name, value)}}, 0});
        }
    }
    return settings;
}

std::vector<SlurmObject> partitions_in(std::string_view printed)
{
    return objects_in(printed, "PartitionName=", partition_of);
}

std::vector<SlurmObject> reservations_in(std::string_view printed)
{
    return objects_in(printed, "ReservationName=", reservation_of);
}

std::vector<std::string> reservation_arguments(const SlurmObject& actual,
                                               const SlurmObject& desired)
{
    const auto value = [](const SlurmObject& object, const std::string& field) {
        const auto found = object.fields.find(field);
        return found == object.fields.end() ? std::string() : found->second;
    };
    std::vector<std::string> arguments;
    for (const char* const field : {"StartTime", "Duration", "Nodes", "Users", "Accounts"}) {
        if (value(actual, field) != value(desired, field)) {
            arguments.push_back(fmt::format("{}={}", field, value(desired, field)));
        }
    }
    flag_arguments("Flags", value(actual, "Flags"), value(desired, "Flags"), arguments);
    return arguments;
}

std::vector<std::string> nodes_in(std::string_view printed)
{
    std::vector<std::string> nodes;
    for (const std::string_view line : split(printed, "\n")) {
        constexpr std::string_view k_head = "NodeName=";
        if (line.starts_with(k_head)) {
            nodes.emplace_back(split(line.substr(k_head.size()), " ").front());
        }
    }
    return nodes;
}

std::vector<std::string> gpu_nodes_in(std::string_view printed)
{
    std::vector<std::string> nodes;
    for (const std::string_view line : split(printed, "\n")) {
        const Fields fields = fields_in(line);
        const auto gres = fields.find("Gres");
        if (gres != fields.end() && gres->second.find("gpu") != std::string::npos) {
            nodes.push_back(fields.at("NodeName"));
        }
    }
    return nodes;
}

std::map<std::string, int> threads_in(std::string_view printed)
{
    std::map<std::string, int> threads;
    for (const std::string_view line : split(printed, "\n")) {
        const Fields fields = fields_in(line);
        const auto count = fields.find("ThreadsPerCore");
        const auto number =
            count != fields.end() ? whole_number(count->second) : std::optional<std::uint64_t>();
        if (number && *number > 0 && *number <= 1024) {
            threads[fields.at("NodeName")] = static_cast<int>(*number);
        }
    }
    return threads;
}

std::vector<QueuedJob> jobs_in(std::string_view printed)
{
    std::vector<QueuedJob> jobs;
    for (const std::string_view line : split(printed, "\n")) {
        const auto cells = split(line, "|");
        if (cells.size() == 2) {
            QueuedJob job{{}, std::string(cells[1])};
            for (const std::string_view name : split(cells[0], ",")) {
                job.partitions.emplace_back(name);
            }
            jobs.push_back(std::move(job));
        }
    }
    return jobs;
}

namespace {

/// `1-02:03:04`, `2:03`, `UNLIMITED`; nullopt for a job that is over its limit.
std::optional<std::chrono::seconds> time_left_in(std::string_view text)
{
    if (text == "UNLIMITED") {
        return std::chrono::seconds::max();
    }
    const std::size_t dash = text.find('-');
    const bool has_days = dash != std::string_view::npos;
    const auto days = has_days ? whole_number(text.substr(0, dash)) : std::uint64_t{0};
    std::uint64_t seconds = 0;
    for (const std::string_view part : split(has_days ? text.substr(dash + 1) : text, ":")) {
        const auto number = whole_number(part);
        if (!number || *number > 59) {
            return std::nullopt;
        }
        seconds = seconds * 60 + *number;
    }
    return days && *days < 100'000
               ? std::optional(std::chrono::seconds(*days * 24 * 3600 + seconds))
               : std::nullopt;
}

} // namespace

std::map<std::string, std::chrono::seconds>
running_longer(const std::map<std::string, std::chrono::seconds>& time_left,
               std::string_view printed)
{
    std::map<std::string, std::chrono::seconds> jobs;
    for (const std::string_view line : split(printed, "\n")) {
        const auto cells = split(line, "|");
        const auto most =
            cells.size() == 3 ? time_left.find(std::string(cells[1])) : time_left.end();
        if (most != time_left.end() && time_left_in(cells[2]) > most->second) {
            jobs.emplace(cells[0], most->second);
        }
    }
    return jobs;
}

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

std::vector<std::string> other_partition_fields_in(std::string_view printed)
{
    std::vector<std::string> texts;
    for (const std::string_view line : split(printed, "\n")) {
        const Fields fields = fields_in(line);
        const auto name = fields.find("PartitionName");
        for (const auto& [field, value] : name != fields.end() ? fields : Fields{}) {
            const bool known =
                std::any_of(
                    k_partition_fields.begin(), k_partition_fields.end(),
                    [&shown = field](const PartitionField& one) { return one.shown == shown; }) ||
                std::find(k_derived.begin(), k_derived.end(), field) != k_derived.end();
            if (!known && !is_default(value)) {
                texts.push_back(fmt::format("partition {}: {}={}", name->second, field, value));
            }
        }
    }
    return texts;
}

std::vector<std::string> other_node_fields_in(std::string_view printed)
{
    std::map<std::string, std::vector<std::string>> nodes_with;
    for (const std::string_view line : split(printed, "\n")) {
        const Fields fields = fields_in(line);
        const auto name = fields.find("NodeName");
        for (const auto& [field, unset] :
             {std::pair("AvailableFeatures", "(null)"), std::pair("Weight", "1"),
              std::pair("MCS_label", "N/A"), std::pair("Owner", "N/A")}) {
            const auto value = fields.find(field);
            if (name != fields.end() && value != fields.end() && value->second != unset) {
                nodes_with[fmt::format("{}={}", field, value->second)].push_back(name->second);
            }
        }
    }
    std::vector<std::string> texts;
    for (const auto& [field, nodes] : nodes_with) {
        texts.push_back(fmt::format("node {}: {}", few_of(nodes), field));
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
