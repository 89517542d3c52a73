// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/scene.h"

#include "core/lower_case.h"
#include "govern/conf.h"
#include "govern/generated.h"
#include "govern/site.h"
#include "govern/values.h"
#include "policy/lua.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::govern {
namespace {

using Kind = SlurmObject::Kind;

constexpr std::string_view k_journal_head = "gpuq-policy-journal 1 ";

void own(std::vector<SlurmObject>& owned, const std::optional<std::string>& policy,
         const std::string& now)
{
    // A policy applied by an older gpuq may no longer be valid: then its objects are unknown.
    if (const auto made = policy ? candidate_of_kept(*policy, now) : fail({}, "")) {
        owned.insert(owned.end(), made->objects.begin(), made->objects.end());
    }
}

std::set<std::string> nodes_of(const SlurmObject& partition, const std::vector<std::string>& all)
{
    const auto nodes = partition.fields.find("Nodes");
    return nodes == partition.fields.end() ? std::set<std::string>{} : as_nodes(nodes->second, all);
}

/// Partitions created by hand on the policy's nodes: they bypass its rules.
std::vector<std::string> strays(const Scene& scene)
{
    std::set<std::string> nodes;
    std::set<std::string> known = partitions_of(scene.texts.include);
    for (const SlurmObject& object : scene.owned) {
        if (object.kind == Kind::partition) {
            nodes.merge(nodes_of(object, scene.actual.nodes));
            known.insert(object.name);
        }
    }
    for (const auto& [path, text] : scene.texts.site) {
        for (const ConfLine& line : lines_of(text)) {
            for (const std::string& name : partitions_in(line)) {
                known.insert(name); // defined by the site on purpose
            }
        }
    }
    std::vector<std::string> names;
    for (const SlurmObject& object : scene.actual.objects) {
        const auto has = nodes_of(object, scene.actual.nodes);
        if (object.kind == Kind::partition && !known.contains(object.name) &&
            std::any_of(has.begin(), has.end(),
                        [&](const std::string& node) { return nodes.contains(node); })) {
            names.push_back(object.name);
        }
    }
    return names;
}

/// The partitions that gpuq owns are those in the generated file, and the strays.
void own_partitions(Scene& scene)
{
    const auto made_by_hand = strays(scene);
    std::erase_if(scene.owned, [](const SlurmObject& one) { return one.kind == Kind::partition; });
    for (const std::string& name : partitions_of(scene.texts.include)) {
        scene.owned.push_back({Kind::partition, name, {}, 0});
    }
    for (const std::string& name : made_by_hand) {
        scene.owned.push_back({Kind::partition, name, {}, 0});
    }
}

Result<std::string> text_of(Admin& admin, const std::string& name)
{
    TRY_ASSIGN(const auto text, admin.read(name));
    return text.value_or("");
}

std::string cluster_in(const std::string& slurm_conf)
{
    for (const ConfLine& line : lines_of(slurm_conf)) {
        if (line.key == "clustername") {
            return lower_case(line.value);
        }
    }
    return "";
}

/// Reads the files included by the site's files, recursively, each of them once.
Result<void> read_included(Admin& admin, const std::string& cluster, Texts& texts)
{
    std::vector<std::string> unread{texts.slurm_conf_path};
    while (!unread.empty()) {
        const std::string from = unread.back();
        unread.pop_back();
        for (const ConfLine& line : lines_of(texts.site.at(from))) {
            if (line.key != "include") {
                continue;
            }
            const std::string path = included_file(line, from, cluster);
            if (path == texts.include_path) {
                texts.include_is_read = true;
            } else if (!texts.site.contains(path)) {
                TRY_ASSIGN(texts.site[path], text_of(admin, path));
                unread.push_back(path);
            }
        }
    }
    return {};
}

Result<Texts> read_texts(Admin& admin)
{
    Texts texts;
    TRY_ASSIGN(const std::string slurm_conf, text_of(admin, "slurm.conf"));
    TRY_ASSIGN(texts.include, text_of(admin, k_include));
    TRY_ASSIGN(texts.script, text_of(admin, k_script));
    TRY_ASSIGN(texts.site_script, text_of(admin, k_site_script));
    texts.slurm_conf_path = admin.path("slurm.conf");
    texts.include_path = admin.path(k_include);
    texts.script_path = admin.path(k_script);
    TRY_ASSIGN(const auto rights, admin.rights(k_script));
    texts.script_is_public = !rights || (rights->mode & 0004U) != 0;
    texts.site[texts.slurm_conf_path] = slurm_conf;
    TRY(read_included(admin, cluster_in(slurm_conf), texts));
    return texts;
}

/// `slurm(64030)`
std::string slurm_user(const SlurmState& actual)
{
    const SlurmObject* const setting = find(actual.objects, Kind::setting, "SlurmUser");
    const std::string value = setting != nullptr ? setting->fields.at("value") : "";
    return value.empty() ? "root" : value.substr(0, value.find('('));
}

/// Clients read the include file, and any user who can write one of these files makes the rules.
Result<void> check_rights(Admin& admin, Scene& scene)
{
    const std::string user = slurm_user(scene.actual);
    for (const auto& [name, mode] : {std::pair(k_directory, 0755U), std::pair(k_include, 0644U),
                                     std::pair(k_script, 0644U), std::pair(k_site_script, 0644U),
                                     std::pair(k_applied, 0644U), std::pair(k_previous, 0644U)}) {
        TRY_ASSIGN(const auto rights, admin.rights(name));
        const bool foreign = rights && rights->owner != "root" && rights->owner != user;
        if (rights && (foreign || (rights->mode & 0022U) != 0)) {
            scene.forgeable.insert(name);
        }
        if (rights && rights->mode != mode) {
            scene.touched[name].push_back({"mode", fmt::format("{:04o}", rights->mode),
                                           fmt::format("{:04o}", mode), Effect::neither});
        }
        if (foreign) {
            scene.touched[name].push_back({"owner", rights->owner,
                                           user == "root" ? user : "root or " + user,
                                           Effect::neither});
        }
    }
    return {};
}

/// A partition to be removed that still has jobs is no longer a change once it accepts no new ones.
void let_leave(const Scene& scene, const Leaving& used, Plan& plan)
{
    const auto draining = leaving_of(scene.texts.include);
    for (const auto& [name, since] : used) {
        plan.leaving.push_back(name);
        std::erase_if(plan.changes, [&, gone = name](const Change& change) {
            return change.kind == Kind::partition && change.action == Change::Action::remove &&
                   change.name == gone && draining.contains(gone);
        });
    }
}

void add_file(Plan& plan, const std::string& name, bool explained)
{
    if (!explained) {
        Change change;
        change.kind = Kind::file;
        change.name = name;
        change.fields.push_back(
            {"text", "differs from the policy", "regenerated", Effect::neither});
        plan.changes.push_back(std::move(change));
    }
}

void add_touched(Plan& plan, const std::string& name, const std::vector<FieldChange>& fields)
{
    const auto found =
        std::find_if(plan.changes.begin(), plan.changes.end(), [&](const Change& change) {
            return change.kind == Kind::file && change.name == name;
        });
    if (found == plan.changes.end()) {
        plan.changes.push_back(
            {Change::Action::modify, Kind::file, name, fields, 0, Effect::neither});
    } else {
        found->fields.insert(found->fields.end(), fields.begin(), fields.end());
    }
}

bool has_change_of(const Plan& plan, std::initializer_list<Kind> kinds)
{
    return std::any_of(plan.changes.begin(), plan.changes.end(), [&](const Change& change) {
        return std::find(kinds.begin(), kinds.end(), change.kind) != kinds.end();
    });
}

} // namespace

std::string to_text(const Journal& journal)
{
    return fmt::format("{}{}\n{}", k_journal_head, journal.step, journal.policy);
}

std::optional<Journal> journal_of(const std::string& text)
{
    const auto end = text.find('\n');
    if (!text.starts_with(k_journal_head) || end == std::string::npos) {
        return std::nullopt;
    }
    return Journal{text.substr(k_journal_head.size(), end - k_journal_head.size()),
                   text.substr(end + 1)};
}

Result<Scene> read_scene(Admin& admin, const std::string& now)
{
    Scene scene;
    TRY_ASSIGN(scene.actual, admin.state());
    TRY_ASSIGN(scene.texts, read_texts(admin));
    TRY_ASSIGN(scene.applied, admin.read(k_applied));
    TRY_ASSIGN(scene.previous, admin.read(k_previous));
    TRY_ASSIGN(const std::string journal_text, text_of(admin, k_journal));
    TRY_ASSIGN(const auto version, admin.loaded_script());
    if (version) {
        scene.actual.objects.push_back({Kind::script, k_script, {{"version", *version}}, 0});
    }
    own(scene.owned, scene.applied, now);
    if (const auto journal = journal_of(journal_text)) {
        scene.interrupted = journal->step;
        scene.is_committed = journal->step == k_commit_step && scene.applied == journal->policy;
        own(scene.owned, journal->policy, now);
    }
    own_partitions(scene);
    // If no policy was ever applied, the files are the site's.
    TRY(scene.applied || scene.previous ? check_rights(admin, scene) : Result<void>());
    return scene;
}

std::set<std::string> unwanted_partitions(const Scene& scene, const Candidate& candidate)
{
    std::set<std::string> names = partitions_of(scene.texts.include);
    std::erase_if(names, [&](const std::string& name) {
        return find(candidate.objects, Kind::partition, name) != nullptr;
    });
    return names;
}

Candidate fitted(const Scene& scene, const Candidate& asked)
{
    Candidate candidate = placed_next_to(scene.actual, asked);
    candidate.site_script = script_of_site(scene.texts);
    add_shares_of_site(scene, candidate);
    if (!candidate.has_queues) {
        const bool ends = scene.texts.script.starts_with(k_generated);
        candidate.script = candidate.site_script.empty() && ends ? std::string(k_no_rules)
                           : ends                                ? candidate.site_script
                                                                 : scene.texts.script;
    } else if (!candidate.site_script.empty()) {
        policy::CombinedScript both =
            policy::with_site_script(candidate.generated, candidate.site_script);
        candidate.script = std::move(both.text);
        candidate.version = std::move(both.version);
        for (SlurmObject& object : candidate.objects) {
            if (object.kind == Kind::script) {
                object.fields["version"] = candidate.version;
            }
        }
    }
    return candidate;
}

std::vector<Change> changes_for(const Scene& scene, const Candidate& candidate,
                                const SlurmState& actual)
{
    std::vector<Change> list = changes(candidate.objects, actual, scene.owned);
    if (candidate.site && candidate.site->kinds.contains(Kind::limit)) {
        std::erase_if(list, [](const Change& change) { return change.kind == Kind::limit; });
    }
    return list;
}

Result<Plan> plan_of(Admin& admin, const Scene& scene, const Candidate& asked)
{
    const Candidate candidate = fitted(scene, asked);
    Plan plan;
    plan.site = site_differences(scene, candidate);
    plan.changes = changes_for(scene, candidate, scene.actual);
    const auto& ruled = candidate.has_queues ? candidate.objects : std::vector<SlurmObject>{};
    plan.obstacles = obstacles(ruled, scene.actual, scene.texts);
    require_site_script(scene, candidate, plan.obstacles);
    plan.notes = notes(ruled, scene.actual, scene.texts);
    if (!plan.changes.empty()) {
        add_hardware_notes(candidate.objects, scene.actual, plan.notes);
    }
    plan.interrupted = scene.interrupted;
    const auto unwanted = unwanted_partitions(scene, candidate);
    Leaving leaving;
    if (!unwanted.empty()) {
        TRY_ASSIGN(const auto jobs, admin.jobs());
        leaving = still_used(scene.texts.include, unwanted, jobs);
    }
    let_leave(scene, leaving, plan);
    // QOS needed by a partition that must stay are kept with it.
    const auto named = qos_named_in(include_of({}, scene.texts.include, leaving));
    std::erase_if(plan.changes, [&](const Change& change) {
        return change.kind == Kind::qos && change.action == Change::Action::remove &&
               named.contains(change.name);
    });
    if (scene.texts.include != include_of(candidate.objects, scene.texts.include, leaving)) {
        add_file(plan, k_include, has_change_of(plan, {Kind::partition, Kind::setting}));
    }
    if (scene.texts.script != candidate.script) {
        add_file(plan, k_script, has_change_of(plan, {Kind::script}));
    }
    for (const auto& [name, fields] : scene.touched) {
        add_touched(plan, name, fields);
    }
    return plan;
}

} // namespace gpuq::govern
