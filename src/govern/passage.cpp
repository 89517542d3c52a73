// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/passage.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::govern {
namespace {

using Kind = SlurmObject::Kind;
using Objects = std::vector<SlurmObject>;

bool is_in_database(Kind kind)
{
    return kind == Kind::qos || kind == Kind::access;
}

bool is_last(Kind kind)
{
    return is_in_database(kind) || kind == Kind::share || kind == Kind::limit ||
           kind == Kind::reservation;
}

/// Objects at least as tight as both the existing and the new ones. New partitions and new access
/// are left out until the end; new QOS are included, but no account or user has them yet.
Objects tightest_of(const Scene& scene, const Candidate& candidate)
{
    Objects least;
    for (const SlurmObject& object : candidate.objects) {
        const SlurmObject* const actual = find(scene.actual.objects, object.kind, object.name);
        if (object.kind == Kind::setting || (object.kind == Kind::qos && actual == nullptr)) {
            least.push_back(object);
        } else if (actual != nullptr &&
                   (object.kind == Kind::partition || is_in_database(object.kind))) {
            least.push_back(tightest(*actual, object, scene.actual.nodes));
        }
    }
    return least;
}

} // namespace

Passage::Passage(Admin& admin, const Scene& scene, const Candidate& candidate,
                 const StepReport& report_step)
    : m_admin(admin)
    , m_scene(scene)
    , m_candidate(candidate)
    , m_report_step(report_step)
    , m_least(tightest_of(scene, candidate))
    , m_unwanted(unwanted_partitions(scene, candidate))
    , m_least_include(include_of(m_least, scene.texts.include, all_leaving()))
{
}

Result<void> Passage::rehearse()
{
    m_report_step("rehearsing the new files on a separate slurmctld");
    const std::string last = include_of(m_candidate.objects, m_scene.texts.include, all_leaving());
    TRY(m_admin.rehearse(last, m_candidate.script));
    return m_least_include == last ? Result<void>()
                                   : m_admin.rehearse(m_least_include, m_candidate.script);
}

Result<void> Passage::run()
{
    if (m_scene.touched.contains(k_directory)) {
        m_report_step("directory: " + m_admin.path(k_directory));
        TRY(m_admin.claim_directory()); // first, or other users could still change the files
    }
    TRY(m_admin.write(k_include_before, m_scene.texts.include));
    TRY(m_admin.write(k_script_before, m_scene.texts.script));
    TRY(begin("tighten"));
    TRY(tighten());
    TRY(begin("close"));
    TRY(put_include(m_least_include));
    TRY(begin("script"));
    TRY(put_script());
    TRY(begin("open"));
    TRY_ASSIGN(m_leaving, find_used());
    const std::string last = include_of(m_candidate.objects, m_scene.texts.include, m_leaving);
    // Skipped if nothing changes: each reconfigure contacts every node of the site, and one has
    // crashed a controller (22.05).
    TRY(last == m_least_include ? Result<void>() : put_include(last));
    TRY(begin("loosen"));
    return loosen();
}

Result<void> Passage::put_back()
{
    m_report_step("restoring the previous state");
    TRY(put_text(k_script, m_scene.texts.script));
    TRY(put_text(k_include, m_scene.texts.include));
    // Even if the text is unchanged: the controller may have read a different one. The result
    // is meaningless if the controller has terminated; ping() detects that.
    (void)m_admin.reconfigure();
    if (!m_admin.ping()) {
        TRY(m_admin.start_controller());
        TRY(m_admin.ping());
    }
    return put_objects_back();
}

std::vector<std::string> Passage::leaving() const
{
    std::vector<std::string> names;
    for (const auto& [name, since] : m_leaving) {
        names.push_back(name);
    }
    return names;
}

Result<void> Passage::begin(const std::string& step)
{
    return m_admin.write(k_journal, to_text(Journal{step, kept(m_candidate)}));
}

Result<void> Passage::tighten()
{
    for (const SlurmObject& object : m_least) {
        const SlurmObject* const actual = find(m_scene.actual.objects, object.kind, object.name);
        if (is_in_database(object.kind) && (actual == nullptr || actual->fields != object.fields)) {
            TRY(set(object));
        }
    }
    return {};
}

Result<void> Passage::set(const SlurmObject& object)
{
    m_report_step(fmt::format("{} {}", word(object.kind), object.name));
    m_has_set_access = m_has_set_access || object.kind == Kind::access;
    return m_admin.set(object);
}

/// slurmctld 24.11 gives a QOS that an account has received to the users below it only when it
/// reads its configuration again; until then their jobs are refused ("Invalid qos
/// specification"). 22.05 does so at once.
Result<void> Passage::refresh_access()
{
    return m_has_set_access && !m_scene.actual.release.starts_with("22.05") ? m_admin.reconfigure()
                                                                            : Result<void>();
}

Result<void> Passage::put_text(const std::string& name, const std::string& text)
{
    TRY_ASSIGN(const auto actual, m_admin.read(name));
    const bool same = actual == text && !m_scene.touched.contains(name);
    if (same || (!actual && text.empty())) {
        return {};
    }
    return text.empty() ? m_admin.erase(name) : m_admin.write(name, text);
}

Result<void> Passage::put_include(const std::string& text)
{
    m_report_step("partitions and settings: " + m_admin.path(k_include));
    TRY(put_text(k_include, text));
    // Even if the text is unchanged: something may have been changed by hand since.
    const auto asked = m_admin.reconfigure();
    m_has_set_access = false;
    if (const auto lives = m_admin.ping(); !lives) {
        return fail(Error::Kind::unreachable,
                    fmt::format("slurmctld fails with the new files: {}", lives.error().text));
    }
    return asked;
}

Result<void> Passage::put_script()
{
    m_report_step("script: " + m_admin.path(k_script));
    if (m_candidate.has_queues && !m_candidate.site_script.empty()) {
        TRY(put_text(k_site_script, m_candidate.site_script)); // before it is replaced
    }
    TRY(put_text(k_script, m_candidate.script));
    TRY_ASSIGN(auto loaded, m_admin.loaded_script());
    if (loaded.value_or("") != m_candidate.version) {
        // The text is unchanged but not loaded: it was changed and changed back by hand.
        TRY(m_admin.write(k_script, m_candidate.script));
        TRY_ASSIGN(loaded, m_admin.loaded_script());
    }
    if (loaded.value_or("") != m_candidate.version) {
        return fail(Error::Kind::denied,
                    fmt::format("slurmctld has not loaded {} of {} (it has {}): see its log",
                                m_candidate.has_queues ? "version " + m_candidate.version
                                                       : "the site's text",
                                m_admin.path(k_script), loaded.value_or("none of gpuq's")));
    }
    return {};
}

/// All unwanted partitions: until the new script is loaded, it may still send jobs to them.
Leaving Passage::all_leaving() const
{
    const Leaving known = leaving_of(m_scene.texts.include);
    Leaving all;
    for (const std::string& name : m_unwanted) {
        const auto found = known.find(name);
        all[name] = found == known.end() ? "" : found->second;
    }
    return all;
}

/// The unwanted partitions that may still have jobs. Only valid once the new script is loaded,
/// which sends no more jobs to them.
Result<Leaving> Passage::find_used()
{
    if (m_unwanted.empty()) {
        return Leaving{};
    }
    TRY_ASSIGN(const auto jobs, m_admin.jobs());
    return still_used(m_scene.texts.include, m_unwanted, jobs);
}

/// Makes the remaining changes, derived from the current state.
Result<void> Passage::loosen()
{
    TRY_ASSIGN(const SlurmState now, m_admin.state());
    TRY_ASSIGN(const auto include, m_admin.read(k_include));
    const auto named = qos_named_in(include.value_or(""));
    for (const Change& change : changes_for(m_scene, m_candidate, now)) {
        const SlurmObject* const desired = find(m_candidate.objects, change.kind, change.name);
        if (change.action != Change::Action::remove) {
            // A share that is no longer wanted is reset to 1, a limit is cleared.
            SlurmObject plain{change.kind, change.name, {}, 0};
            if (change.kind == Kind::share) {
                plain.fields["fairshare"] = "1";
            }
            TRY(is_last(change.kind) ? set(desired != nullptr ? *desired : plain) : Result<void>());
        } else if (change.kind == Kind::reservation ||
                   (change.kind == Kind::qos && !named.contains(change.name))) {
            m_report_step(fmt::format("{} {}: removed", word(change.kind), change.name));
            TRY(m_admin.remove(change.kind, change.name));
        }
    }
    TRY(refresh_access());
    return show_reservations(m_candidate.objects, m_candidate.script);
}

/// slurmctld refreshes a script's view of the reservations only if one of them has changed in a
/// later second than all those it knows (22.05, _update_resvs_global in job_submit_lua.c). A
/// reservation created in the same second as another, with a job submitted in between, would
/// stay invisible. A script that is loaded again sees all of them.
Result<void> Passage::show_reservations(const Objects& objects, const std::string& script)
{
    const bool has_any = std::any_of(objects.begin(), objects.end(), [](const SlurmObject& one) {
        return one.kind == Kind::reservation;
    });
    return has_any && !script.empty() ? m_admin.write(k_script, script) : Result<void>();
}

Result<void> Passage::put_objects_back()
{
    TRY_ASSIGN(const SlurmState now, m_admin.state());
    // With any share, a policy sets those of all accounts.
    const bool rules_shares =
        std::any_of(m_candidate.objects.begin(), m_candidate.objects.end(),
                    [](const SlurmObject& one) { return one.kind == Kind::share; });
    for (const SlurmObject& object : m_scene.actual.objects) {
        const SlurmObject* const actual = find(now.objects, object.kind, object.name);
        const bool ours = (rules_shares && object.kind == Kind::share) ||
                          find(m_candidate.objects, object.kind, object.name) != nullptr ||
                          find(m_scene.owned, object.kind, object.name) != nullptr;
        if (ours && is_last(object.kind) &&
            (actual == nullptr || actual->fields != object.fields)) {
            m_has_set_access = m_has_set_access || object.kind == Kind::access;
            TRY(m_admin.set(object));
        }
    }
    for (const SlurmObject& object : m_candidate.objects) {
        const bool is_new = find(m_scene.actual.objects, object.kind, object.name) == nullptr;
        if (is_new && (object.kind == Kind::qos || object.kind == Kind::reservation)) {
            TRY(m_admin.remove(object.kind, object.name));
        }
        if (is_new && object.kind == Kind::access &&
            find(now.objects, object.kind, object.name) != nullptr) {
            TRY(m_admin.set({Kind::access, object.name, {{"accounts", ""}, {"users", ""}}, 0}));
        }
    }
    const auto limits = gpu_limits(now);
    for (const SlurmObject& limit : gpu_limits(m_scene.actual)) {
        const SlurmObject* const actual = find(limits, Kind::limit, limit.name);
        TRY(actual != nullptr && actual->fields == limit.fields ? Result<void>()
                                                                : m_admin.set(limit));
    }
    TRY(refresh_access());
    return show_reservations(m_scene.actual.objects, m_scene.texts.script);
}

} // namespace gpuq::govern
