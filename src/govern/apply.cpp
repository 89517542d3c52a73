// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/apply.h"

#include "govern/passage.h"
#include "govern/scene.h"
#include "log/log.h"
#include "policy/course_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <sstream>

namespace gpuq::govern {
namespace {

using Kind = SlurmObject::Kind;

constexpr std::size_t k_minute_length = std::string_view("2026-11-22T20:00").size();
constexpr int k_most_failures = 5; ///< after more of them, the pause is no longer

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

/// The closed partitions that may still have jobs. While the same hours are open, those are the
/// ones that the policy in force so far did not close.
Result<std::map<std::string, std::chrono::seconds>> newly_closed(Admin& admin, const Scene& scene,
                                                                 const Candidate& candidate)
{
    TRY_ASSIGN(const bool same, is_up_to_date(admin, candidate));
    auto closed = candidate.closed;
    // Interrupted: the new policy may be the stored one already, without the notice.
    if (same && !scene.interrupted && scene.applied) {
        if (const auto before = candidate_of_kept(*scene.applied, candidate.now)) {
            std::erase_if(closed,
                          [&](const auto& one) { return before->closed.contains(one.first); });
        }
    }
    return closed;
}

/// Gives an end to the jobs that run where none may run at these hours. Repeated if it fails, since
/// the hours are noted and the journal is removed only afterwards.
Result<void> give_notice(Admin& admin, const Scene& scene, const Candidate& candidate,
                         const StepReport& report_step)
{
    TRY_ASSIGN(const auto closed, newly_closed(admin, scene, candidate));
    if (closed.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto jobs, admin.limit_jobs(closed));
    if (!jobs.empty()) {
        const std::string text =
            fmt::format("the hours of their pool end: jobs {} have notice", fmt::join(jobs, ", "));
        log::discard(log::Part::cluster, "audit log", admin.record(text));
        report_step(text);
    }
    return {};
}

/// The attempts of `advance` that have failed since the last success.
struct Failures {
    int count = 0;
    std::string at; ///< the last one, local time
    std::string reason;
};

Result<std::optional<Failures>> read_failures(Admin& admin)
{
    TRY_ASSIGN(const auto text, admin.read(k_failures));
    std::istringstream stream(text.value_or(""));
    Failures found;
    stream >> found.count >> found.at;
    std::getline(stream >> std::ws, found.reason);
    const bool is_valid = found.count > 0 && found.at.size() == k_minute_length;
    return is_valid ? std::optional(found) : std::nullopt;
}

Result<void> forget_failures(Admin& admin)
{
    TRY_ASSIGN(const auto text, admin.read(k_failures));
    return text ? admin.erase(k_failures) : Result<void>();
}

void note_failure(Admin& admin, const std::optional<Failures>& before, const std::string& now,
                  const Error& error)
{
    const int count = before ? std::min(before->count + 1, k_most_failures) : 1;
    log::discard(log::Part::cluster, "failures of advance",
                 admin.write(k_failures, fmt::format("{} {} {}\n", count, now, error.text)));
}

/// After failures, an attempt that is due only 1, 2, 4 .. 16 minutes later is `busy`.
Result<void> check_pause(const Failures& failures, const std::string& now)
{
    const policy::LocalMinutes last = policy::local_time_of(failures.at);
    const policy::LocalMinutes next =
        last + std::chrono::minutes(1 << (std::min(failures.count, k_most_failures) - 1));
    const policy::LocalMinutes present = policy::local_time_of(now);
    return present >= next || present < last // the clock was set back
               ? Result<void>()
               : fail(Error::Kind::busy,
                      fmt::format("the last attempt failed at {} ({}): the next one is at {}, or "
                                  "at once without --pause",
                                  failures.at, failures.reason, policy::as_written(next)));
}

bool is_another(const Scene& scene, const Candidate& candidate)
{
    return scene.applied != kept(candidate);
}

/// Records that the next steps put another policy in the place of the applied one, which rollback
/// then finds in k_previous.
Result<void> announce_commit(Admin& admin, const Scene& scene, const Candidate& candidate)
{
    return is_another(scene, candidate)
               ? admin.write(k_journal, to_text(Journal{k_commit_step, kept(candidate)}))
               : Result<void>();
}

/// Ordered so that applying again after a crash between any two of these steps does no harm.
Result<void> commit(Admin& admin, const Scene& scene, const Candidate& candidate,
                    const StepReport& report_step)
{
    const bool another = is_another(scene, candidate);
    TRY(keep_previous(admin, scene, another, report_step));
    if (another || scene.touched.contains(k_applied)) {
        TRY(admin.write(k_applied, kept(candidate)));
    }
    TRY(give_notice(admin, scene, candidate, report_step));
    TRY(keep_calendar(admin, candidate));
    TRY(forget_failures(admin));
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
        done = announce_commit(admin, scene, candidate);
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
        TRY(announce_commit(admin, scene, candidate));
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

Result<Applied> put_moment_in_force(Admin& admin, const Candidate& candidate,
                                    const std::string& now, const StepReport& report_step)
{
    TRY(revive(admin, report_step));
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    TRY(require_belief(admin, scene, k_applied));
    return put_in_force(admin, scene, candidate, now, report_step);
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

Result<Applied> advance(Admin& admin, const std::string& now, const StepReport& report_step,
                        Pause pause)
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
    TRY_ASSIGN(const auto failures, read_failures(admin));
    if (failures && pause == Pause::after_failures) {
        TRY(check_pause(*failures, now));
    }
    auto done = put_moment_in_force(admin, candidate, now, report_step);
    if (!done) {
        note_failure(admin, failures, now, done.error());
    }
    return done;
}

Result<Applied> rollback(Admin& admin, const std::string& now, const StepReport& report_step)
{
    TRY_ASSIGN(const auto hold, admin.hold());
    TRY(revive(admin, report_step));
    TRY_ASSIGN(const Scene scene, read_scene(admin, now));
    const bool is_midway = scene.interrupted && !scene.is_committed;
    const auto& target = is_midway ? scene.applied : scene.previous;
    const char* const name = is_midway ? k_applied : k_previous;
    if (!target) {
        return fail(Error::Kind::missing,
                    fmt::format("there is no policy before this one ({})", admin.path(name)));
    }
    TRY(require_belief(admin, scene, name));
    TRY_ASSIGN(const Candidate candidate, candidate_of_kept(*target, now));
    return put_in_force(admin, scene, candidate, now, report_step);
}

} // namespace gpuq::govern
