// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/import.h"

#include "cli/base/message.h"
#include "cli/base/output_file.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/proposed_queues.h"
#include "core/lower_case.h"
#include "core/number.h"
#include "govern/conf.h"
#include "govern/plan.h"
#include "govern/site.h"
#include "policy/read.h"
#include "ports/clock.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <tuple>

namespace gpuq::cli {
namespace {

using Kind = SlurmObject::Kind;
using report::Json;

/// More users of a QOS are not listed: the file is for reading, and has at most 256 KiB.
constexpr std::size_t k_most_holders = 200;
constexpr std::size_t k_most_others = 500;

/// Settings that limit users, or decide when their jobs start.
constexpr std::array k_settings = {"AccountingStorageEnforce",
                                   "AccountingStorageTRES",
                                   "CliFilterPlugins",
                                   "DefMemPerCPU",
                                   "DefMemPerNode",
                                   "DependencyParameters",
                                   "DisableRootJobs",
                                   "EnforcePartLimits",
                                   "FederationParameters",
                                   "GresTypes",
                                   "JobRequeue",
                                   "JobSubmitPlugins",
                                   "Licenses",
                                   "MaxArraySize",
                                   "MaxJobCount",
                                   "MaxMemPerCPU",
                                   "MaxMemPerNode",
                                   "MaxTasksPerNode",
                                   "OverTimeLimit",
                                   "PreemptExemptTime",
                                   "PreemptMode",
                                   "PreemptParameters",
                                   "PreemptType",
                                   "PriorityCalcPeriod",
                                   "PriorityDecayHalfLife",
                                   "PriorityFavorSmall",
                                   "PriorityFlags",
                                   "PriorityMaxAge",
                                   "PriorityParameters",
                                   "PrioritySiteFactorPlugin",
                                   "PriorityType",
                                   "PriorityUsageResetPeriod",
                                   "PriorityWeightAge",
                                   "PriorityWeightAssoc",
                                   "PriorityWeightFairShare",
                                   "PriorityWeightJobSize",
                                   "PriorityWeightPartition",
                                   "PriorityWeightQOS",
                                   "PriorityWeightTRES",
                                   "PrivateData",
                                   "SchedulerParameters",
                                   "SchedulerType",
                                   "SelectType",
                                   "SelectTypeParameters",
                                   "VSizeFactor"};

bool is_policy_setting(const std::string& name)
{
    return std::any_of(k_settings.begin(), k_settings.end(),
                       [&](const char* one) { return lower_case(one) == lower_case(name); });
}

bool is_utf8(const SlurmObject& object)
{
    return !first_not_utf8(object.name) &&
           std::all_of(object.fields.begin(), object.fields.end(), [](const auto& field) {
               return !first_not_utf8(field.first) && !first_not_utf8(field.second);
           });
}

std::string one_line(const SlurmObject& object)
{
    std::string text = fmt::format("{} {}:", word(object.kind), object.name);
    for (const auto& [name, value] : object.fields) {
        text += fmt::format(" {}={}", name, value);
    }
    return text;
}

/// Settings of slurm.conf that are compared with nothing, where they are defined.
void add_conf_lines(const govern::Scene& scene, std::vector<std::string>& others)
{
    const std::set<std::string> described{"include", "nodename", "partitionname", "clustername"};
    for (const auto& [path, text] : scene.texts.site) {
        for (const govern::ConfLine& line : govern::lines_of(text)) {
            const bool secret = line.key.ends_with("pass") || line.key.ends_with("info");
            if (!described.contains(line.key) && !is_policy_setting(line.key)) {
                others.push_back(fmt::format("{}:{}: {}",
                                             std::filesystem::path(path).filename().string(),
                                             line.number, secret ? line.key + "=..." : line.text));
            }
        }
    }
}

/// False if the object adds nothing to Slurm's defaults.
bool is_worth_listing(const SlurmObject& object)
{
    if (object.kind == Kind::share) {
        const std::string& share = object.fields.at("fairshare");
        return share != "1" && share != "parent";
    }
    if (object.kind == Kind::setting) {
        return is_policy_setting(object.name) && !object.fields.at("value").empty();
    }
    return true;
}

/// Moves a list that is too long for the file to the others.
void shorten(SlurmObject& access, std::vector<std::string>& others)
{
    for (const char* const field : {"users", "without"}) {
        const auto found = access.fields.find(field);
        if (found == access.fields.end()) {
            continue;
        }
        const auto count = static_cast<std::size_t>(
            std::count(found->second.begin(), found->second.end(), ',') + 1);
        if (count > k_most_holders) {
            others.push_back(fmt::format("access {}: {}: {} users", access.name, field, count));
            access.fields.erase(found);
        }
    }
}

/// YAML's double quotes; only for UTF-8.
std::string quoted(const std::string& text)
{
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (byte < ' ' || byte == 0x7f) {
            result += fmt::format("\\x{:02x}", byte);
        } else {
            result += c;
        }
    }
    return result + "\"";
}

/// A name that needs no quotes in YAML.
bool is_plain(const std::string& text)
{
    const auto fits = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '@';
    };
    const std::string word = lower_case(text);
    return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
           std::all_of(text.begin(), text.end(), fits) && word != "null";
}

std::string key_text(const std::string& text)
{
    return is_plain(text) ? text : quoted(text);
}

struct Section {
    Kind kind;
    const char* name;
    const char* only_field; ///< written as the object's value
};
constexpr std::array k_sections = {Section{Kind::setting, "settings", "value"},
                                   Section{Kind::partition, "partitions", nullptr},
                                   Section{Kind::qos, "qos", nullptr},
                                   Section{Kind::access, "access", nullptr},
                                   Section{Kind::share, "shares", "fairshare"},
                                   Section{Kind::limit, "limits", nullptr},
                                   Section{Kind::reservation, "reservations", nullptr},
                                   Section{Kind::script, "scripts", "version"}};

std::string section_text(const Section& section, const std::vector<SlurmObject>& objects)
{
    std::string text;
    for (const SlurmObject& object : objects) {
        if (object.kind != section.kind) {
            continue;
        }
        if (section.only_field != nullptr) {
            text += fmt::format("    {}: {}\n", key_text(object.name),
                                quoted(object.fields.at(section.only_field)));
            continue;
        }
        text +=
            fmt::format("    {}:{}\n", key_text(object.name), object.fields.empty() ? " {}" : "");
        for (const auto& [name, value] : object.fields) {
            text += fmt::format("      {}: {}\n", key_text(name), quoted(value));
        }
    }
    return text.empty() ? fmt::format("  {}: {{}}\n", section.name)
                        : fmt::format("  {}:\n{}", section.name, text);
}

std::string comment(const std::vector<std::string>& lines, std::size_t most)
{
    constexpr std::size_t k_widest = 400;
    std::string text;
    for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) {
        text += fmt::format("#   {}\n", clipped(sanitised(lines[i]), k_widest));
    }
    if (lines.size() > most) {
        text += fmt::format("#   and {} more: gpuq policy import --json\n", lines.size() - most);
    }
    return text;
}

std::string value_of_setting(const govern::Scene& scene, const std::string& name)
{
    const SlurmObject* const found = govern::find(scene.actual.objects, Kind::setting, name);
    return found != nullptr ? found->fields.at("value") : "";
}

/// The text must be one that plan and apply can read.
Result<void> check_text(const std::string& text)
{
    TRY_ASSIGN(const policy::Reading reading, policy::read_policy(text, "the imported policy"));
    for (const policy::Finding& finding : reading.findings) {
        if (finding.weight == policy::Finding::Weight::error) {
            return fail(Error::Kind::internal, to_line(finding, "the imported policy"));
        }
    }
    return {};
}

} // namespace

Imported imported_from(const govern::Scene& scene)
{
    Imported imported;
    imported.cluster = value_of_setting(scene, "ClusterName");
    imported.release = scene.actual.release;
    for (SlurmObject& object : govern::objects_of_site(scene, {})) {
        if (!is_worth_listing(object)) {
            continue;
        }
        if (!is_utf8(object) || object.name.empty()) {
            imported.others.push_back(one_line(object) + " (not UTF-8)");
            continue;
        }
        if (object.kind == Kind::access) {
            shorten(object, imported.others);
        }
        imported.objects.push_back(std::move(object));
    }
    std::stable_sort(imported.objects.begin(), imported.objects.end(),
                     [](const SlurmObject& one, const SlurmObject& other) {
                         return std::tie(one.kind, one.name) < std::tie(other.kind, other.name);
                     });
    imported.others.insert(imported.others.end(), scene.actual.others.begin(),
                           scene.actual.others.end());
    add_conf_lines(scene, imported.others);
    imported.queues = proposed_queues(imported.objects, scene.actual);
    return imported;
}

std::string policy_text(const Imported& imported)
{
    std::string text =
        fmt::format("# Slurm {} of cluster {}, described by `gpuq policy import`.\n"
                    "#\n"
                    "# gpuq changes nothing that is listed under `site`: `gpuq policy plan` and "
                    "`drift` report\n"
                    "# where Slurm differs from it. Names and values are Slurm's; times of "
                    "partitions, QOS and\n"
                    "# reservations are in minutes. man gpuq-adoption(7) has the next steps.\n"
                    "version: 1\n"
                    "site:\n",
                    sanitised(imported.release), sanitised(imported.cluster));
    for (const Section& section : k_sections) {
        text += section_text(section, imported.objects);
    }
    if (!imported.others.empty()) {
        text += "\n# In Slurm, but neither listed above nor compared:\n" +
                comment(imported.others, k_most_others);
    }
    if (!imported.queues.empty()) {
        text +=
            "\n# The partitions with GPUs as queues of a policy. gpuq enforces the rules of a "
            "queue in a\n# partition of its own: before it is applied, remove the partition from "
            "`site` and from slurm.conf.\n" +
            comment(imported.queues, k_most_others);
    }
    return text;
}

Json::Members import_document(const Imported& imported)
{
    Json::Elements others;
    for (const std::string& other : imported.others) {
        others.push_back(sanitised(other));
    }
    return {{"cluster", imported.cluster},
            {"release", imported.release},
            {"objects", imported.objects.size()},
            {"policy", policy_text(imported)},
            {"others", Json::array(std::move(others))}};
}

Result<int> policy_import(Invocation& invocation)
{
    if (invocation.arguments.size() > 1) {
        return fail(Error::Kind::usage,
                    fmt::format("unexpected argument '{}'; name the file with --output FILE",
                                invocation.arguments[1]));
    }
    TRY_ASSIGN(Admin* const admin, invocation.services.admin());
    TRY_ASSIGN(const govern::Scene scene,
               govern::read_scene(*admin, local_time(invocation.services.clock().now())));
    const Imported imported = imported_from(scene);
    const std::string text = policy_text(imported);
    TRY(check_text(text));
    const auto path = invocation.options.value("output");
    if (path && *path != "-") {
        TRY_ASSIGN(const OutputFile file, new_policy_file(*path));
        TRY(file.write(text));
    }
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(import_document(imported))));
    } else if (!path || *path == "-") {
        TRY(print_text(text));
    }
    print_note(invocation.globals.quiet,
               fmt::format("{} described, {} only in comments",
                           counted(imported.objects.size(), "object"), imported.others.size()));
    return 0;
}

} // namespace gpuq::cli
