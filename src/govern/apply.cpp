// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/apply.h"

#include "govern/generated.h"
#include "govern/scene.h"
#include "log/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

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

/// The transition to one policy: the steps listed in apply.h and, if one of them fails, the way
/// back. The journal records each step before it begins, and copies of the previous files allow
/// revive() to restart the controller after a crash.
class Passage {
public:
    Passage(Admin& admin, const Scene& scene, const Candidate& candidate,
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

    /// Changes nothing.
    Result<void> rehearse()
    {
        m_report_step("rehearsing the new files on a separate slurmctld");
        const std::string last =
            include_of(m_candidate.objects, m_scene.texts.include, all_leaving());
        TRY(m_admin.rehearse(last, m_candidate.script));
        return m_least_include == last ? Result<void>()
                                       : m_admin.rehearse(m_least_include, m_candidate.script);
    }

    Result<void> run()
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

    Result<void> put_back()
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

    std::vector<std::string> leaving() const
    {
        std::vector<std::string> names;
        for (const auto& [name, since] : m_leaving) {
            names.push_back(name);
        }
        return names;
    }

private:
    Result<void> begin(const std::string& step)
    {
        return m_admin.write(k_journal, to_text(Journal{step, kept(m_candidate)}));
    }

    Result<void> tighten()
    {
        for (const SlurmObject& object : m_least) {
            const SlurmObject* const actual =
                find(m_scene.actual.objects, object.kind, object.name);
            if (is_in_database(object.kind) &&
                (actual == nullptr || actual->fields != object.fields)) {
                TRY(set(object));
            }
        }
        return {};
    }

    Result<void> set(const SlurmObject& object)
    {
        m_report_step(fmt::format("{} {}", word(object.kind), object.name));
        m_has_set_access = m_has_set_access || object.kind == Kind::access;
        return m_admin.set(object);
    }

    /// slurmctld 24.11 gives a QOS that an account has received to the users below it only when it
    /// reads its configuration again; until then their jobs are refused ("Invalid qos
    /// specification"). 22.05 does so at once.
    Result<void> refresh_access()
    {
        return m_has_set_access && !m_scene.actual.release.starts_with("22.05")
                   ? m_admin.reconfigure()
                   : Result<void>();
    }

    Result<void> put_text(const std::string& name, const std::string& text)
    {
        TRY_ASSIGN(const auto actual, m_admin.read(name));
        const bool same = actual == text && !m_scene.touched.contains(name);
        if (same || (!actual && text.empty())) {
            return {};
        }
        return text.empty() ? m_admin.erase(name) : m_admin.write(name, text);
    }

    Result<void> put_include(const std::string& text)
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

    Result<void> put_script()
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
    Leaving all_leaving() const
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
    Result<Leaving> find_used()
    {
        if (m_unwanted.empty()) {
            return Leaving{};
        }
        TRY_ASSIGN(const auto jobs, m_admin.jobs());
        return still_used(m_scene.texts.include, m_unwanted, jobs);
    }

    /// Makes the remaining changes, derived from the current state.
    Result<void> loosen()
    {
        TRY_ASSIGN(const SlurmState now, m_admin.state());
        TRY_ASSIGN(const auto include, m_admin.read(k_include));
        const auto named = qos_named_in(include.value_or(""));
        for (const Change& change : changes(m_candidate.objects, now, m_scene.owned)) {
            const SlurmObject* const desired = find(m_candidate.objects, change.kind, change.name);
            if (change.action != Change::Action::remove) {
                // A share that is no longer wanted is reset to 1, a limit is cleared.
                SlurmObject plain{change.kind, change.name, {}, 0};
                if (change.kind == Kind::share) {
                    plain.fields["fairshare"] = "1";
                }
                TRY(is_last(change.kind) ? set(desired != nullptr ? *desired : plain)
                                         : Result<void>());
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
    Result<void> show_reservations(const Objects& objects, const std::string& script)
    {
        const bool has_any =
            std::any_of(objects.begin(), objects.end(),
                        [](const SlurmObject& one) { return one.kind == Kind::reservation; });
        return has_any && !script.empty() ? m_admin.write(k_script, script) : Result<void>();
    }

    Result<void> put_objects_back()
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

    Admin& m_admin;
    const Scene& m_scene;
    const Candidate& m_candidate;
    const StepReport& m_report_step;
    Objects m_least;
    std::set<std::string> m_unwanted;
    std::string m_least_include;
    Leaving m_leaving;
    bool m_has_set_access = false;
};

/// Keeps the policy that `rollback` will put in force, unless another user could have written it.
Result<void> keep_previous(Admin& admin, const Scene& scene, bool another,
                           const StepReport& report_step)
{
    const char* const source = another ? k_applied : k_previous;
    const auto& text = another ? scene.applied : scene.previous;
    if (!text) {
        return {};
    }
    if (scene.believes(source)) {
        return another || scene.touched.contains(k_previous) ? admin.write(k_previous, *text)
                                                             : Result<void>();
    }
    report_step(
        fmt::format("others could write {}: no previous policy remains to roll back to", source));
    return scene.previous ? admin.erase(k_previous) : Result<void>();
}

std::string calendar_text(const std::string& open_hours)
{
    return fmt::format("open: {}\n", open_hours);
}

/// Whether the candidate's calendar entries are those of the last `apply` or `advance`.
Result<bool> is_up_to_date(Admin& admin, const Candidate& candidate)
{
    TRY_ASSIGN(const auto kept, admin.read(k_calendar));
    return candidate.open_hours ? kept == calendar_text(*candidate.open_hours) : !kept;
}

Result<void> keep_calendar(Admin& admin, const Candidate& candidate)
{
    TRY_ASSIGN(const bool same, is_up_to_date(admin, candidate));
    return same                   ? Result<void>()
           : candidate.open_hours ? admin.write(k_calendar, calendar_text(*candidate.open_hours))
                                  : admin.erase(k_calendar);
}

/// Gives an end to the jobs that run where none may run at these hours. Repeated if it fails, since
/// the hours are noted only afterwards.
Result<void> give_notice(Admin& admin, const Candidate& candidate, const StepReport& report_step)
{
    TRY_ASSIGN(const bool same, is_up_to_date(admin, candidate));
    if (same || candidate.closed.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto jobs, admin.limit_jobs(candidate.closed));
    if (!jobs.empty()) {
        const std::string text =
            fmt::format("the hours of their pool end: jobs {} have notice", fmt::join(jobs, ", "));
        log::discard(log::Part::cluster, "audit log", admin.record(text));
        report_step(text);
    }
    return {};
}

/// Ordered so that applying again after a crash between any two of these steps does no harm.
Result<void> commit(Admin& admin, const Scene& scene, const Candidate& candidate,
                    const StepReport& report_step)
{
    const bool another = scene.applied != kept(candidate);
    TRY(keep_previous(admin, scene, another, report_step));
    if (another || scene.touched.contains(k_applied)) {
        TRY(admin.write(k_applied, kept(candidate)));
    }
    TRY(give_notice(admin, candidate, report_step));
    TRY(keep_calendar(admin, candidate));
    const bool needs_copy = candidate.has_queues && !candidate.site_script.empty();
    if (!scene.texts.site_script.empty() && !needs_copy) {
        TRY(admin.erase(k_site_script)); // job_submit.lua is the site's again
    }
    TRY(admin.erase(k_journal));
    TRY(admin.erase(k_include_before));
    return admin.erase(k_script_before);
}

/// Checks that the policy really is in force.
Result<void> verify(Admin& admin, const Candidate& candidate, const std::string& now)
{
    TRY_ASSIGN(Scene after, read_scene(admin, now));
    for (const char* const last : {k_applied, k_previous}) {
        after.touched.erase(last);
    }
    TRY_ASSIGN(const Plan left, plan_of(admin, after, candidate));
    std::vector<std::string> names;
    for (const Change& change : left.changes) {
        // slurmctld reads some settings only when it starts: `drift` reports them, but they are no
        // reason to go back.
        if (change.kind != Kind::setting) {
            names.push_back(fmt::format("{} {}", word(change.kind), change.name));
            for (const FieldChange& field : change.fields) {
                names.back() +=
                    fmt::format(" {}={} instead of {}", field.name, field.was.value_or("(none)"),
                                field.becomes.value_or("(none)"));
            }
        }
    }
    if (!names.empty()) {
        return fail(Error::Kind::denied,
                    fmt::format("Slurm did not apply: {}", fmt::join(names, "; ")));
    }
    return {};
}

Error went_back(Error error, const Result<void>& back)
{
    error.text += back ? "; the previous state is restored"
                       : fmt::format("; restoring the previous state failed too ({}): the journal "
                                     "is kept, `gpuq policy apply` or `rollback` continues from it",
                                     back.error().text);
    return error;
}

Result<void> pass(Admin& admin, const Scene& scene, const Candidate& candidate, Passage& passage,
                  const std::string& now, const StepReport& report_step)
{
    auto done = passage.run();
    if (done) {
        done = verify(admin, candidate, now);
    }
    if (done) {
        return commit(admin, scene, candidate, report_step);
    }
    const auto back = passage.put_back();
    if (back && !scene.interrupted) {
        TRY(admin.erase(k_journal));
    }
    return went_back(done.error(), back);
}

/// A change as one line of the audit log.
std::string line_of(const Change& change)
{
    constexpr std::array<std::string_view, 3> k_actions{"create", "modify", "remove"};
    std::string line =
        fmt::format("{} {} {}", k_actions.at(static_cast<std::size_t>(change.action)),
                    word(change.kind), change.name);
    for (const FieldChange& field : change.fields) {
        line += fmt::format("; {}: {} -> {}", field.name, field.was.value_or("(none)"),
                            field.becomes.value_or("(none)"));
    }
    return line;
}

/// Records the outcome; that of each step has been recorded already.
void record(Admin& admin, const std::vector<Change>& changes, const Result<void>& done)
{
    for (const Change& change : done ? changes : std::vector<Change>{}) {
        log::discard(log::Part::cluster, "audit log", admin.record(line_of(change)));
    }
    log::discard(log::Part::cluster, "audit log",
                 admin.record(done ? "in force" : "failed: " + done.error().text));
}

Result<Applied> put_in_force(Admin& admin, const Scene& scene, const Candidate& asked,
                             const std::string& now, const StepReport& report_step)
{
    const Candidate candidate = fitted(scene, asked);
    TRY_ASSIGN(const Plan plan, plan_of(admin, scene, candidate));
    if (!plan.obstacles.empty()) {
        return fail(Error::Kind::denied,
                    fmt::format("nothing was changed: {}", fmt::join(plan.obstacles, "; ")));
    }
    if (plan.changes.empty() && !scene.interrupted) {
        TRY(commit(admin, scene, candidate, report_step));
        return Applied{{}, plan.leaving};
    }
    const StepReport show_and_record = [&](const std::string& step) {
        log::discard(log::Part::cluster, "audit log", admin.record(step));
        report_step(step);
    };
    TRY(admin.record(
        fmt::format("policy version {}, {} changes", candidate.version, plan.changes.size())));
    Passage passage(admin, scene, candidate, show_and_record);
    if (const auto rehearsed = passage.rehearse(); !rehearsed) {
        Error error = rehearsed.error();
        error.text = "nothing was changed: " + error.text;
        record(admin, {}, error);
        return error;
    }
    const auto done = pass(admin, scene, candidate, passage, now, report_step);
    record(admin, plan.changes, done);
    TRY(done);
    return Applied{plan.changes, passage.leaving()};
}

/// A crash may have left the controller dead in the middle of a change: it can run on the previous
/// files.
Result<void> revive(Admin& admin, const StepReport& report_step)
{
    if (admin.ping()) {
        return {};
    }
    TRY_ASSIGN(const auto journal, admin.read(k_journal));
    TRY_ASSIGN(const auto include, admin.read(k_include_before));
    TRY_ASSIGN(const auto script, admin.read(k_script_before));
    if (!journal || !include) {
        return fail(Error::Kind::unreachable, "slurmctld does not answer: nothing was changed");
    }
    report_step("slurmctld stopped in the middle of a change: restoring the previous files");
    TRY(admin.write(k_include, *include));
    if (script && !script->empty()) {
        TRY(admin.write(k_script, *script));
    }
    TRY(admin.start_controller());
    return admin.ping();
}

Result<void> require_belief(Admin& admin, const Scene& scene, const char* name)
{
    return scene.believes(name)
               ? Result<void>()
               : fail(Error::Kind::denied,
                      fmt::format("others could write {}, or its directory (gpuq policy drift): "
                                  "nothing was changed. Check that {} is unmodified, and apply "
                                  "that file",
                                  name, admin.path(name)));
}

/// The policy in force, as it should be at `now`.
Result<Candidate> applied_candidate(Admin& admin, const std::string& now)
{
    TRY_ASSIGN(const auto applied, admin.read(k_applied));
    return applied ? candidate_of_kept(*applied, now)
                   : fail(Error::Kind::missing, "no policy is in force: gpuq policy apply");
}

/// An operator decides whether an interrupted `apply` of another policy is resumed or reverted.
Result<void> require_same_policy(Admin& admin, const Candidate& candidate)
{
    TRY_ASSIGN(const auto text, admin.read(k_journal));
    const auto journal = journal_of(text.value_or(""));
    return !journal || journal->policy == kept(candidate)
               ? Result<void>()
               : fail(Error::Kind::denied,
                      fmt::format("the apply of another policy was interrupted at '{}': gpuq "
                                  "policy apply resumes it, gpuq policy rollback reverts it",
                                  journal->step));
}

} // namespace

Result<Plan> plan(Admin& admin, const Candidate& candidate, const std::string& now)
{
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    return plan_of(admin, scene, candidate);
}

Result<Plan> drift(Admin& admin, const std::string& now)
{
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    if (!scene.applied) {
        return fail(Error::Kind::missing, "no policy is in force: gpuq policy apply");
    }
    TRY_ASSIGN(const Candidate candidate, candidate_of_kept(*scene.applied, now));
    TRY_ASSIGN(Plan plan, plan_of(admin, scene, candidate));
    TRY_ASSIGN(const bool up_to_date, is_up_to_date(admin, candidate));
    if (!up_to_date) {
        plan.notes.emplace_back("the calendar has changed since the policy was last put in force: "
                                "`gpuq policy advance`; is gpuq-policy-advance.timer active?");
    }
    return plan;
}

Result<Applied> apply(Admin& admin, const Candidate& candidate, const std::string& now,
                      const StepReport& report_step)
{
    TRY_ASSIGN(const auto hold, admin.hold());
    TRY(revive(admin, report_step));
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    return put_in_force(admin, scene, candidate, now, report_step);
}

Result<Applied> advance(Admin& admin, const std::string& now, const StepReport& report_step)
{
    TRY_ASSIGN(const Candidate due, applied_candidate(admin, now));
    TRY_ASSIGN(const bool up_to_date, is_up_to_date(admin, due));
    TRY_ASSIGN(const auto journal, admin.read(k_journal));
    if (up_to_date && !journal) {
        return Applied{};
    }
    TRY_ASSIGN(const auto hold, admin.hold());
    TRY_ASSIGN(const Candidate candidate, applied_candidate(admin, now)); // perhaps another by now
    TRY(require_same_policy(admin, candidate));
    TRY(revive(admin, report_step));
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    TRY(require_belief(admin, scene, k_applied));
    return put_in_force(admin, scene, candidate, now, report_step);
}

Result<Applied> rollback(Admin& admin, const std::string& now, const StepReport& report_step)
{
    TRY_ASSIGN(const auto hold, admin.hold());
    TRY(revive(admin, report_step));
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    const auto& target = scene.interrupted ? scene.applied : scene.previous;
    const char* const name = scene.interrupted ? k_applied : k_previous;
    if (!target) {
        return fail(Error::Kind::missing,
                    fmt::format("there is no policy before this one ({})", admin.path(name)));
    }
    TRY(require_belief(admin, scene, name));
    TRY_ASSIGN(const Candidate candidate, candidate_of_kept(*target, now));
    return put_in_force(admin, scene, candidate, now, report_step);
}

} // namespace gpuq::govern
