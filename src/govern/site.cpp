// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/site.h"

#include "govern/generated.h"
#include "govern/values.h"
#include "policy/course_times.h"
#include "policy/lua.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace gpuq::govern {
namespace {

using Kind = SlurmObject::Kind;
using Objects = std::vector<SlurmObject>;

/// The flags of a repeated reservation whose occurrences next_start() can compute.
constexpr std::string_view k_repeats[] = {"DAILY", "WEEKDAY", "WEEKLY"};

std::string value_of(const SlurmObject& object, const std::string& field)
{
    const auto found = object.fields.find(field);
    return found == object.fields.end() ? "" : found->second;
}

Objects limits_of(const SlurmState& actual)
{
    std::map<std::string, SlurmObject> of;
    for (const AssociationLimit& one : actual.limits) {
        const auto sign = one.limit.find('=');
        const SlurmObject none{Kind::limit, one.who, {}, 0};
        of.emplace(one.who, none).first->second.fields[one.limit.substr(0, sign)] =
            one.limit.substr(sign + 1);
    }
    Objects list;
    for (auto& [who, limit] : of) {
        list.push_back(std::move(limit));
    }
    return list;
}

/// `2026-11-03T13:00`, possibly with more text after it; the value comes from a file or from Slurm.
bool is_time(const std::string& text)
{
    constexpr std::string_view k_form = "0000-00-00T00:00";
    return text.size() >= k_form.size() &&
           std::equal(k_form.begin(), k_form.end(), text.begin(), [](char form, char c) {
               return form == '0' ? c >= '0' && c <= '9' : form == c;
           });
}

bool has_shares(const Objects& objects)
{
    return std::any_of(objects.begin(), objects.end(),
                       [](const SlurmObject& one) { return one.kind == Kind::share; });
}

bool is_plain_share(const SlurmObject& share)
{
    const std::string value = value_of(share, "fairshare");
    return value == "1" || value == "parent";
}

bool is_over(const SlurmObject& reservation, const std::string& now)
{
    const auto flags = as_set(value_of(reservation, "Flags"));
    const bool repeats = std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
        return flag == "HOURLY" || flag == "DAILY" || flag.starts_with("WEEK");
    });
    const std::string start = value_of(reservation, "StartTime");
    const auto minutes = as_number(value_of(reservation, "Duration"));
    return !repeats && is_time(start) && minutes &&
           policy::local_time_of(start) + std::chrono::minutes(*minutes) <=
               policy::local_time_of(now);
}

/// With the start of the current or next occurrence; a start that can't be computed is left out.
SlurmObject at_next_start(SlurmObject reservation, const std::string& now)
{
    const auto flags = as_set(value_of(reservation, "Flags"));
    const auto duration = as_number(value_of(reservation, "Duration"));
    const std::string start = value_of(reservation, "StartTime");
    const bool others =
        flags.contains("HOURLY") || flags.contains("WEEKEND") || flags.contains("TIME_FLOAT");
    if (others || !is_time(start)) {
        reservation.fields.erase("StartTime");
        return reservation;
    }
    for (const std::string_view repeat : k_repeats) {
        if (flags.contains(std::string(repeat))) {
            reservation.fields["StartTime"] =
                next_start(start, std::string(repeat), static_cast<int>(duration.value_or(0)), now);
        }
    }
    return reservation;
}

/// Both objects with the fields that are comparable: of access those in the file, which may leave
/// out a long list of users.
void make_comparable(SlurmObject& listed, SlurmObject& actual, const std::string& now)
{
    if (listed.kind == Kind::reservation) {
        listed = at_next_start(listed, now);
        actual = at_next_start(actual, now);
    } else if (listed.kind == Kind::access) {
        std::erase_if(actual.fields,
                      [&](const auto& field) { return !listed.fields.contains(field.first); });
    }
}

bool is_listed(const SlurmObject& object, const policy::Site& site)
{
    // A setting is compared only if it is listed.
    return !site.kinds.contains(object.kind) || object.kind == Kind::setting ||
           find(site.objects, object.kind, object.name) != nullptr ||
           (object.kind == Kind::share && is_plain_share(object));
}

} // namespace

std::string script_of_site(const Texts& texts)
{
    if (texts.script.starts_with(k_generated)) {
        return texts.site_script;
    }
    return is_ours(texts.script) ? "" : texts.script;
}

void add_shares_of_site(const Scene& scene, Candidate& candidate)
{
    if (!candidate.site || has_shares(candidate.objects) || !has_shares(scene.owned)) {
        return;
    }
    for (const SlurmObject& object : candidate.site->objects) {
        if (object.kind == Kind::share) {
            candidate.objects.push_back(object);
        }
    }
}

void require_site_script(const Scene& scene, const Candidate& candidate,
                         std::vector<std::string>& obstacles)
{
    if (candidate.site_script.empty() || !candidate.has_queues) {
        return;
    }
    const bool is_copy = scene.texts.script.starts_with(k_generated);
    if (is_copy && !scene.believes(k_site_script)) {
        obstacles.push_back("others could write the copy of the site's job_submit.lua (gpuq policy "
                            "drift): check the text of site.lua, then chown it to root and chmod "
                            "it to 644");
    }
    if (!is_copy && !scene.texts.script_is_public) {
        obstacles.push_back(fmt::format("{} is not readable by all users, but the script that "
                                        "contains it will be: move its secrets to another file, "
                                        "then chmod it to 644",
                                        scene.texts.script_path));
    }
}

std::vector<SlurmObject> objects_of_site(const Scene& scene,
                                         const std::vector<SlurmObject>& of_policy)
{
    const auto generated = partitions_of(scene.texts.include);
    Objects list;
    for (const SlurmObject& object : scene.actual.objects) {
        // Those of `gpuq reserve` come and go.
        const bool reserved = object.kind == Kind::reservation && object.name.starts_with("gpuq:");
        const bool ours = reserved || find(of_policy, object.kind, object.name) != nullptr ||
                          object.kind == Kind::script ||
                          (object.kind != Kind::setting && object.kind != Kind::share &&
                           find(scene.owned, object.kind, object.name) != nullptr) ||
                          (object.kind == Kind::partition && generated.contains(object.name)) ||
                          ((object.kind == Kind::qos || object.kind == Kind::access) &&
                           object.name.starts_with("gpuq_"));
        if (!ours) {
            list.push_back(object);
        }
    }
    for (SlurmObject& limit : limits_of(scene.actual)) {
        list.push_back(std::move(limit));
    }
    if (const std::string script = script_of_site(scene.texts); !script.empty()) {
        list.push_back({Kind::script, k_script, {{"version", policy::script_version(script)}}, 0});
    }
    return list;
}

std::vector<Change> site_differences(const Scene& scene, const Candidate& candidate)
{
    if (!candidate.site) {
        return {};
    }
    SlurmState actual;
    actual.nodes = scene.actual.nodes;
    actual.objects = objects_of_site(scene, candidate.objects);
    const bool shares_out = has_shares(candidate.objects);
    if (shares_out) { // the policy sets those of all accounts
        std::erase_if(actual.objects,
                      [](const SlurmObject& one) { return one.kind == Kind::share; });
    }
    Objects listed;
    for (SlurmObject object : candidate.site->objects) {
        const bool of_policy = object.kind != Kind::script &&
                               find(candidate.objects, object.kind, object.name) != nullptr;
        const bool over = object.kind == Kind::reservation && is_over(object, candidate.now);
        const auto found =
            std::find_if(actual.objects.begin(), actual.objects.end(), [&](const SlurmObject& one) {
                return find({object}, one.kind, one.name) != nullptr;
            });
        if (found != actual.objects.end()) {
            make_comparable(object, *found, candidate.now);
        }
        const bool not_sites = of_policy || (shares_out && object.kind == Kind::share);
        if (!not_sites && !(over && found == actual.objects.end())) {
            listed.push_back(std::move(object));
        }
    }
    std::vector<Change> list = changes_to(listed, actual);
    for (const SlurmObject& object : actual.objects) {
        if (!is_listed(object, *candidate.site)) {
            list.push_back(
                {Change::Action::remove, object.kind, object.name, {}, 0, Effect::neither});
        }
    }
    for (Change& change : list) {
        change.effect = Effect::neither; // gpuq changes none of them
        for (FieldChange& field : change.fields) {
            field.effect = Effect::neither;
        }
    }
    std::stable_sort(list.begin(), list.end(), [](const Change& one, const Change& other) {
        return std::pair(one.kind, one.name) < std::pair(other.kind, other.name);
    });
    return list;
}

} // namespace gpuq::govern
