// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/plan.h"

#include "core/lower_case.h"
#include "govern/values.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

namespace gpuq::govern {
namespace {

using Kind = SlurmObject::Kind;
using Value = std::optional<std::string>;
using Names = std::vector<std::string>;

constexpr std::string_view k_ours = "gpuq_"; // policy/queue_partitions.h, qos_of

/// How to interpret the value of a field.
enum class Form { text, amounts, list, nodes, limit, time };

Form form_of(Kind kind, const std::string& field)
{
    const auto one_of = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), field) != names.end();
    };
    if (field == "Nodes") {
        return Form::nodes;
    }
    if (field == "TRESBillingWeights") {
        return Form::amounts;
    }
    if (kind == Kind::setting) {
        return Form::time;
    }
    if (kind == Kind::access || one_of({"AllowQos", "AllowAccounts", "AllowGroups", "Flags",
                                        "Users", "Accounts", "DenyAccounts", "DenyQos"})) {
        return Form::list;
    }
    const bool limit = field.starts_with("Max") || field.starts_with("Grp");
    return limit ? Form::limit : Form::text;
}

/// A field of a partition that Slurm does not show while it has its default value.
std::string_view default_of(Kind kind, const std::string& field)
{
    if (kind != Kind::partition) {
        return "";
    }
    return field == "GraceTime" ? "0" : field == "PriorityTier" ? "1" : "";
}

/// The amounts in a limit, by name; the name of a plain number is empty.
std::map<std::string, double> limits_of(const Value& value)
{
    if (!value) {
        return {};
    }
    if (const auto number = as_number(*value)) {
        return {{"", static_cast<double>(*number)}};
    }
    return as_amounts(*value);
}

std::string limit_text(const std::map<std::string, double>& limits)
{
    const auto number = limits.find("");
    return number == limits.end() ? joined(limits)
                                  : std::to_string(static_cast<std::int64_t>(number->second));
}

/// For lists that grant access: a removed element tightens, an added one loosens.
Effect effect_of_sets(const std::set<std::string>& was, const std::set<std::string>& becomes)
{
    Effect effect = Effect::neither;
    if (!std::includes(becomes.begin(), becomes.end(), was.begin(), was.end())) {
        effect = effect | Effect::tightens;
    }
    if (!std::includes(was.begin(), was.end(), becomes.begin(), becomes.end())) {
        effect = effect | Effect::loosens;
    }
    return effect;
}

Effect opposite(Effect effect)
{
    if (effect == Effect::tightens) {
        return Effect::loosens;
    }
    return effect == Effect::loosens ? Effect::tightens : effect;
}

Effect effect_of_limits(const Value& was, const Value& becomes)
{
    constexpr double k_none = std::numeric_limits<double>::infinity();
    const auto before = limits_of(was);
    const auto after = limits_of(becomes);
    const auto of = [](const std::map<std::string, double>& limits, const std::string& name) {
        const auto found = limits.find(name);
        return found == limits.end() ? k_none : found->second;
    };
    Effect effect = Effect::neither;
    for (const auto& [name, ignored] : before) {
        effect = effect | (of(after, name) > of(before, name) ? Effect::loosens : Effect::neither);
    }
    for (const auto& [name, amount] : after) {
        effect = effect | (amount < of(before, name) ? Effect::tightens : Effect::neither);
    }
    return effect;
}

/// For the accounts or users that have a QOS; `root` means that all have it.
Effect effect_of_access(const std::set<std::string>& was, const std::set<std::string>& becomes)
{
    if (was.contains("root") != becomes.contains("root")) {
        return becomes.contains("root") ? Effect::loosens : Effect::tightens;
    }
    return effect_of_sets(was, becomes);
}

Effect effect_of(Kind kind, const std::string& field, const Value& was, const Value& becomes,
                 const Names& nodes)
{
    const auto set = [](const Value& value) { return as_set(value.value_or("")); };
    if (kind == Kind::access) {
        const Effect effect = effect_of_access(set(was), set(becomes));
        return field == "without" ? opposite(effect) : effect;
    }
    if (kind == Kind::qos && field == "Flags") {
        return opposite(effect_of_sets(set(was), set(becomes)));
    }
    if (kind == Kind::partition && field == "State") {
        return was ? Effect::loosens : Effect::tightens;
    }
    if (kind == Kind::partition && (field.starts_with("Allow") || field.starts_with("Deny"))) {
        if (was && becomes) {
            const Effect effect = effect_of_sets(set(was), set(becomes));
            return field.starts_with("Deny") ? opposite(effect) : effect;
        }
        return becomes ? Effect::tightens : Effect::loosens;
    }
    if (kind == Kind::partition && field == "Nodes") {
        return effect_of_sets(as_nodes(was.value_or(""), nodes),
                              as_nodes(becomes.value_or(""), nodes));
    }
    const bool limits = kind == Kind::qos || kind == Kind::partition || kind == Kind::limit;
    return limits && form_of(kind, field) == Form::limit ? effect_of_limits(was, becomes)
                                                         : Effect::neither;
}

Value value_of(const std::map<std::string, std::string>& fields, const std::string& name)
{
    const auto found = fields.find(name);
    return found == fields.end() ? std::nullopt : Value(found->second);
}

std::vector<FieldChange> field_changes(Kind kind, const std::map<std::string, std::string>& actual,
                                       const std::map<std::string, std::string>& desired,
                                       const Names& nodes)
{
    std::set<std::string> names;
    for (const auto* fields : {&actual, &desired}) {
        for (const auto& [name, ignored] : *fields) {
            names.insert(name);
        }
    }
    std::vector<FieldChange> list;
    for (const std::string& name : names) {
        const Value was = value_of(actual, name);
        const Value becomes = value_of(desired, name);
        if (!is_same_value(kind, name, was, becomes, nodes)) {
            list.push_back({name, was, becomes, effect_of(kind, name, was, becomes, nodes)});
        }
    }
    return list;
}

/// If all have the QOS, individual names are irrelevant.
std::map<std::string, std::string> plain_access(std::map<std::string, std::string> fields)
{
    if (as_set(fields["accounts"]).contains("root")) {
        fields["accounts"] = "root";
        fields["users"] = "";
    } else {
        fields.erase("without"); // irrelevant: no parent account has it
    }
    return fields;
}

std::map<std::string, std::string> fields_of(const SlurmObject& object)
{
    return object.kind == Kind::access ? plain_access(object.fields) : object.fields;
}

bool is_live(Kind kind)
{
    return kind != Kind::requirement && kind != Kind::hardware && kind != Kind::file;
}

Effect effect_of_all(const Change& change)
{
    if (change.kind == Kind::partition && change.action == Change::Action::create) {
        return Effect::loosens;
    }
    if (change.kind == Kind::partition && change.action == Change::Action::remove) {
        return Effect::tightens;
    }
    Effect effect = Effect::neither;
    for (const FieldChange& field : change.fields) {
        effect = effect | field.effect;
    }
    return effect;
}

bool same_name(Kind kind, const std::string& one, const std::string& other)
{
    // scontrol prints PriorityWeightFairShare, slurm.conf(5) documents PriorityWeightFairshare.
    return kind != Kind::setting ? one == other : lower_case(one) == lower_case(other);
}

/// The object as it is in Slurm by default.
SlurmObject by_default(const SlurmObject& object)
{
    SlurmObject plain{object.kind, object.name, {}, object.line};
    if (object.kind == Kind::share) {
        plain.fields["fairshare"] = "1";
    } else if (object.kind == Kind::access) {
        plain.fields = {{"accounts", ""}, {"users", ""}};
    }
    return plain;
}

void add_change(const SlurmObject& object, const SlurmState& actual, std::vector<Change>& list)
{
    const SlurmObject* const found = find(actual.objects, object.kind, object.name);
    const bool always_present = object.kind == Kind::setting || object.kind == Kind::share ||
                                object.kind == Kind::access || object.kind == Kind::script;
    const auto now = found != nullptr ? fields_of(*found) : by_default(object).fields;
    Change change{found != nullptr || always_present ? Change::Action::modify
                                                     : Change::Action::create,
                  object.kind,
                  object.name,
                  field_changes(object.kind, now, fields_of(object), actual.nodes),
                  object.line,
                  Effect::neither};
    if (!change.fields.empty() || change.action == Change::Action::create) {
        change.effect = effect_of_all(change);
        list.push_back(std::move(change));
    }
}

/// True for a user in an account whose users all have `fairshare=parent`: they are equal among
/// themselves, as the policy intends.
bool shares_as_its_account(const SlurmObject& share, const SlurmState& actual)
{
    constexpr const char* k_parent = "parent";
    const auto at = share.name.rfind('@');
    if (at == std::string::npos || share.fields.at("fairshare") != k_parent) {
        return false;
    }
    const std::string account = share.name.substr(at);
    return std::all_of(actual.objects.begin(), actual.objects.end(), [&](const SlurmObject& one) {
        return one.kind != Kind::share || !one.name.ends_with(account) ||
               one.fields.at("fairshare") == k_parent;
    });
}

/// Adds the removal of objects that were wanted before or have gpuq's prefix, and are no longer
/// wanted.
void add_removals(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                  const std::vector<SlurmObject>& owned, std::vector<Change>& list)
{
    // Shares are relative to each other: if a policy defines any, all others must be 1.
    const bool shares_out = std::any_of(desired.begin(), desired.end(), [](const SlurmObject& one) {
        return one.kind == Kind::share;
    });
    for (const SlurmObject& object : actual.objects) {
        if (find(desired, object.kind, object.name) != nullptr) {
            continue;
        }
        const bool ours = (object.kind == Kind::share && shares_out) ||
                          find(owned, object.kind, object.name) != nullptr ||
                          (object.kind == Kind::qos && object.name.starts_with(k_ours));
        const bool can_go = object.kind == Kind::partition || object.kind == Kind::qos ||
                            object.kind == Kind::reservation;
        if (ours && can_go) {
            Change change{Change::Action::remove, object.kind, object.name, {}, 0, Effect::neither};
            change.effect = effect_of_all(change);
            list.push_back(std::move(change));
        } else if (ours && object.kind == Kind::share && !shares_as_its_account(object, actual)) {
            add_change(by_default(object), actual, list);
        }
    }
}

void add_limits(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                std::vector<Change>& list)
{
    if (!rules_all_gpus(desired, actual)) {
        return;
    }
    for (const SlurmObject& limit : gpu_limits(actual)) {
        list.push_back({Change::Action::modify, Kind::limit, limit.name,
                        field_changes(Kind::limit, limit.fields, {}, actual.nodes), 0,
                        Effect::loosens});
    }
}

SlurmObject tightest_access(const SlurmObject& actual, const SlurmObject& desired)
{
    const auto common = [&](const std::string& field) {
        const auto one = as_set(value_of(actual.fields, field).value_or(""));
        const auto other = as_set(value_of(desired.fields, field).value_or(""));
        std::set<std::string> both;
        std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                              std::inserter(both, both.end()));
        return joined(both);
    };
    SlurmObject least = desired;
    const bool was_open = as_set(value_of(actual.fields, "accounts").value_or("")).contains("root");
    if (as_set(value_of(desired.fields, "accounts").value_or("")).contains("root")) {
        least.fields = actual.fields;
    } else if (!was_open) {
        least.fields = {{"accounts", common("accounts")}, {"users", common("users")}};
    }
    return least;
}

Value tighter_limit(const Value& one, const Value& other)
{
    auto least = limits_of(one);
    for (const auto& [name, amount] : limits_of(other)) {
        const auto [place, is_new] = least.emplace(name, amount);
        place->second = is_new ? amount : std::min(place->second, amount);
    }
    return least.empty() ? std::nullopt : Value(limit_text(least));
}

Value common_part(Form form, const Value& one, const Value& other, const Names& all_nodes)
{
    const auto parts = [&](const std::string& value) {
        return form == Form::nodes ? as_nodes(value, all_nodes) : as_set(value);
    };
    if (!one || !other) {
        return one ? one : other;
    }
    const auto first = parts(*one);
    const auto second = parts(*other);
    std::set<std::string> both;
    std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                          std::inserter(both, both.end()));
    return joined(both);
}

} // namespace

std::string_view word(Effect effect)
{
    constexpr std::array<std::string_view, 4> k_keywords{"", "tightens", "loosens",
                                                         "tightens and loosens"};
    return k_keywords[static_cast<std::size_t>(effect)];
}

const SlurmObject* find(const std::vector<SlurmObject>& objects, Kind kind, const std::string& name)
{
    const auto found = std::find_if(objects.begin(), objects.end(), [&](const SlurmObject& object) {
        return object.kind == kind && same_name(kind, object.name, name);
    });
    return found == objects.end() ? nullptr : &*found;
}

bool is_same_value(Kind kind, const std::string& field, const Value& one, const Value& other,
                   const Names& all_nodes)
{
    const std::string_view by_default = default_of(kind, field);
    const std::string first = one.value_or(std::string(by_default));
    const std::string second = other.value_or(std::string(by_default));
    switch (form_of(kind, field)) {
    case Form::amounts:
        return as_amounts(first) == as_amounts(second);
    case Form::list:
        return as_set(first) == as_set(second);
    case Form::nodes:
        return as_nodes(first, all_nodes) == as_nodes(second, all_nodes);
    case Form::limit: {
        const auto limits = limits_of(one);
        // A time, or a format of a later release, is not an amount: compare the texts.
        return limits == limits_of(other) && (!limits.empty() || first == second);
    }
    case Form::time:
        return plain_time(first) == plain_time(second);
    case Form::text:
        break;
    }
    return first == second;
}

std::vector<SlurmObject> gpu_limits(const SlurmState& actual)
{
    constexpr std::array<std::string_view, 5> k_limits{"GrpTRES", "GrpTRESRunMins", "MaxTRES",
                                                       "MaxTRESMins", "MaxTRESPerNode"};
    std::map<std::string, SlurmObject> of;
    for (const AssociationLimit& one : actual.limits) {
        const auto sign = one.limit.find('=');
        const std::string name = one.limit.substr(0, sign);
        auto amounts = as_amounts(std::string_view(one.limit).substr(sign + 1));
        std::erase_if(amounts,
                      [](const auto& amount) { return !amount.first.starts_with("gres/gpu"); });
        if (std::find(k_limits.begin(), k_limits.end(), name) != k_limits.end() &&
            !amounts.empty()) {
            const SlurmObject none{Kind::limit, one.who, {}, 0};
            of.emplace(one.who, none).first->second.fields[name] = joined(amounts);
        }
    }
    std::vector<SlurmObject> list;
    for (auto& [who, limit] : of) {
        list.push_back(std::move(limit));
    }
    return list;
}

bool rules_all_gpus(const std::vector<SlurmObject>& desired, const SlurmState& actual)
{
    std::set<std::string> ruled;
    for (const SlurmObject& object : desired) {
        if (object.kind == Kind::partition) {
            ruled.merge(as_nodes(object.fields.at("Nodes"), actual.nodes));
        }
    }
    return !desired.empty() &&
           std::all_of(actual.gpu_nodes.begin(), actual.gpu_nodes.end(),
                       [&](const std::string& node) { return ruled.contains(node); });
}

std::vector<Change> changes_to(const std::vector<SlurmObject>& desired, const SlurmState& actual)
{
    std::vector<Change> list;
    for (const SlurmObject& object : desired) {
        if (is_live(object.kind)) {
            add_change(object, actual, list);
        }
    }
    return list;
}

std::vector<Change> changes(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                            const std::vector<SlurmObject>& owned)
{
    std::vector<Change> list = changes_to(desired, actual);
    add_removals(desired, actual, owned, list);
    add_limits(desired, actual, list);
    std::stable_sort(list.begin(), list.end(), [](const Change& one, const Change& other) {
        return std::pair(one.kind, one.name) < std::pair(other.kind, other.name);
    });
    return list;
}

SlurmObject tightest(const SlurmObject& actual, const SlurmObject& desired, const Names& all_nodes)
{
    if (desired.kind == Kind::access) {
        return tightest_access(actual, desired);
    }
    SlurmObject least = desired;
    std::set<std::string> names;
    for (const auto* fields : {&actual.fields, &desired.fields}) {
        for (const auto& [name, ignored] : *fields) {
            names.insert(name);
        }
    }
    for (const std::string& name : names) {
        const Value one = value_of(actual.fields, name);
        const Value other = value_of(desired.fields, name);
        if (is_same_value(desired.kind, name, one, other, all_nodes)) {
            continue; // keep the spelling of `desired`
        }
        const Form form = form_of(desired.kind, name);
        Value value = other;
        if (form == Form::limit) {
            value = tighter_limit(one, other);
        } else if (desired.kind == Kind::qos && name == "Flags") {
            value = joined([&] {
                auto flags = as_set(one.value_or(""));
                flags.merge(as_set(other.value_or("")));
                return flags;
            }());
        } else if (name == "State") {
            value = one ? one : other; // UP is left out
        } else if (name == "Nodes" || name.starts_with("Allow")) {
            value = common_part(form, one, other, all_nodes);
        }
        if (value && !(value->empty() && (name == "Nodes" || name.starts_with("Allow")))) {
            least.fields[name] = *value;
        } else if (value) {
            least.fields["State"] = "DOWN"; // nothing in common: closed for a moment
        } else {
            least.fields.erase(name);
        }
    }
    return least;
}

} // namespace gpuq::govern
