// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/admin_text.h"

#include "core/number.h"
#include "core/strings.h"
#include "slurm/field_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace gpuq::slurm {
namespace {

using Kind = SlurmObject::Kind;
using Fields = std::map<std::string, std::string>;

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

/// Fields of a partition that follow from others, or are the state of the moment.
constexpr std::array<std::string_view, 6> k_derived = {"PartitionName", "JobDefaults", "TotalCPUs",
                                                       "TotalNodes",    "TRES",        "NodeSets"};

bool is_default(std::string_view value)
{
    constexpr std::array<std::string_view, 8> k_defaults = {"",          "NO",  "NONE", "(null)",
                                                            "UNLIMITED", "N/A", "0",    "INFINITE"};
    return std::find(k_defaults.begin(), k_defaults.end(), value) != k_defaults.end();
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

} // namespace gpuq::slurm
