// SPDX-License-Identifier: GPL-2.0-or-later
// Run by a later link's supervisor when its job starts. The checks, in this order: another job's
// claim, a recorded end of the run, the end of the previous link (from its journal, else from
// Slurm), a stop request, the chain's rules (judge), missing prerequisites, and last the claim
// itself. The claim ensures that only one job runs the program. After it, the journals are read
// once more, because the previous link's node may have been cut off and come back.
#include "runs/succession.h"

#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/records/record.h"
#include "runs/status.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

/// A predecessor is dead if its job is unknown to Slurm and its heartbeat is older than this.
constexpr std::chrono::seconds k_silence = 60s;

template <typename Parse>
auto read_as(Store& store, const std::string& path, Parse parse)
    -> decltype(parse(std::string_view()))
{
    const auto text = store.read(path);
    if (!text) {
        return text.error();
    }
    return parse(*text);
}

std::optional<LinkJob> job_of_link(Store& store, const RunKey& key, LinkNumber link)
{
    const auto job = read_as(store, layout::job_json(key, link), link_job_from_json);
    return job ? std::optional(*job) : std::nullopt;
}

std::optional<StopRequest> stop_request(Store& store, const RunKey& key)
{
    for (const char* name : {layout::k_stop_request, layout::k_save_and_stop_request}) {
        if (const auto stop =
                read_as(store, layout::inbox(key) + "/" + name, stop_request_from_json)) {
            return *stop;
        }
    }
    return std::nullopt;
}

/// If several jobs were made for a link, the one that ran it counts.
std::optional<JobId> job_that_ran(Store& store, const Evidence& evidence)
{
    for (const Event& event : evidence.journal) {
        if (event.kind == Event::Kind::supervisor_started && event.job && *event.job != 0) {
            return JobId{*event.job};
        }
    }
    const auto job = job_of_link(store, evidence.key, evidence.link);
    return job ? std::optional(job->job) : std::nullopt;
}

Evidence evidence_of(Store& store, const Run& run, LinkNumber link)
{
    Evidence evidence{run.key};
    evidence.run = run;
    evidence.link = link;
    const auto journal = store.read(layout::journal(run.key, link));
    evidence.journal = journal ? parse_journal(*journal) : std::vector<Event>{};
    const auto beat = store.read(layout::heartbeat(run.key, link));
    evidence.heartbeat = beat ? parse_heartbeat(*beat) : std::nullopt;
    evidence.stop = stop_request(store, run.key);
    return evidence;
}

/// How a link ended that recorded no ending; nothing while that is unknown.
std::optional<Ending> inferred_ending(Store& store, Cluster* cluster, const Run& run,
                                      LinkNumber link, Time now)
{
    Evidence evidence = evidence_of(store, run, link);
    if (evidence.heartbeat && is_fresh(*evidence.heartbeat, now)) {
        return std::nullopt; // its node may be cut off and its program still alive
    }
    const auto job = job_that_ran(store, evidence);
    if (cluster == nullptr || !job) {
        return std::nullopt;
    }
    const auto found = cluster->job(*job);
    if (found && !is_over(found->state)) {
        return std::nullopt;
    }
    if (found) {
        evidence.slurm = *found;
        return ending_from_slurm(evidence, found->state, found->exit_status, std::nullopt,
                                 std::min(found->ends_at.value_or(now), now));
    }
    const bool silent = !evidence.heartbeat || !is_within(*evidence.heartbeat, k_silence, now);
    if (found.error().kind == Error::Kind::missing && silent) {
        return Ending{static_cast<int>(ExitStatus::lost), Cause::lost,
                      "Slurm no longer knows its job", last_life(store, run.key, link, now)};
    }
    return std::nullopt;
}

std::optional<Ending> cancelled_job(Store& store, Cluster& cluster, const Run& run, LinkNumber link,
                                    Time now)
{
    Evidence evidence = evidence_of(store, run, link);
    const auto job = job_that_ran(store, evidence);
    const auto found = job ? cluster.job(*job) : Result<Job>(fail(Error::Kind::missing, ""));
    if (!found || found->state != JobState::cancelled) {
        return std::nullopt;
    }
    evidence.slurm = *found;
    return ending_from_slurm(evidence, found->state, std::nullopt, std::nullopt,
                             std::min(found->ends_at.value_or(now), now));
}

/// Detects a scancel that arrived after the link had recorded its ending or after its supervisor
/// was killed: it ends the run all the same. So does the scancel of an earlier link's job, if the
/// links after it never began, or if the one that did could not query Slurm.
std::optional<Ending> cancelled_meanwhile(Store& store, Cluster* cluster, const Run& run,
                                          const std::vector<LinkPast>& links, Time now)
{
    int began = 0;
    for (auto link = links.rbegin(); cluster != nullptr && link != links.rend(); ++link) {
        if (auto ending = cancelled_job(store, *cluster, run, link->link, now)) {
            return ending;
        }
        if (link->started_at && ++began == 2) {
            break;
        }
    }
    return std::nullopt;
}

/// True for the one job that runs the link. If the claim can't be written for another reason than
/// an existing claim, the job counts as the only one, which is almost always right.
bool claims(Store& store, const RunKey& key, LinkNumber link, JobId self)
{
    const std::string text = fmt::format("{}\n", self.value);
    const auto written = store.write_once(layout::claim(key, link), text);
    if (written || written.error().kind != Error::Kind::busy) {
        return true;
    }
    const auto owner = store.read(layout::claim(key, link));
    return !owner || *owner == text;
}

bool is_claimed_by_another(Store& store, const RunKey& key, LinkNumber link,
                           std::optional<JobId> self)
{
    const auto owner = store.read(layout::claim(key, link));
    return owner && self && *owner != fmt::format("{}\n", self->value);
}

/// The end of the run as recorded by a link, since the user last resumed it.
std::optional<Ending> recorded_end(const std::vector<LinkPast>& links)
{
    for (auto link = links.rbegin(); link != links.rend(); ++link) {
        if (link->ending && !link->ending->continues) {
            return link->ending;
        }
        if (link->resumed) {
            break;
        }
    }
    return std::nullopt;
}

/// Earlier links that never began have no claim: this job claims them, so that no late job can run
/// one of them.
void fence(Store& store, const RunKey& key, LinkNumber link, JobId self)
{
    for (--link.value; link > LinkNumber{1} && !store.size(layout::claim(key, link));
         --link.value) {
        (void)store.write_once(layout::claim(key, link), fmt::format("{}\n", self.value));
    }
}

Succession leaving(Succession found)
{
    found.is = Succession::Is::leave;
    return found;
}

Succession ended(Store& store, const RunKey& key, Succession found, const Ending& ending)
{
    (void)store.write_once(layout::ended_json(key), to_json(ending));
    return leaving(std::move(found));
}

/// A job that was cancelled while it was pending ends the run.
bool is_withdrawn(Cluster& cluster, JobId job)
{
    const auto found = cluster.job(job);
    return found ? found->state == JobState::cancelled : found.error().kind == Error::Kind::missing;
}

void end_for(Verdict& verdict, const std::string& why, Time at)
{
    verdict = Verdict{};
    verdict.decision = Verdict::Decision::over;
    verdict.ending = Ending{static_cast<int>(ExitStatus::stopped), Cause::cancelled, why, at};
}

} // namespace

Succession succeed(Store& store, Cluster* cluster, const Run& run, LinkNumber link,
                   std::optional<JobId> self, Time now,
                   const std::function<void(LinkPast&)>& take_saved,
                   const std::function<bool()>& lacks)
{
    Succession found;
    const LinkNumber before{link.value - 1};
    if (is_claimed_by_another(store, run.key, link, self)) {
        return leaving(std::move(found));
    }
    found.links = read_links(store, run.key, before);
    LinkPast& last = found.links.back();
    const auto own = job_of_link(store, run.key, link);
    const bool resumed = own && own->resumed;
    found.has_own_ending = last.ending.has_value();
    if (!resumed && store.size(layout::ended_json(run.key))) {
        return leaving(std::move(found));
    }
    if (const auto end = resumed ? std::nullopt : recorded_end(found.links)) {
        return ended(store, run.key, std::move(found), *end);
    }
    if (!found.has_own_ending) {
        last.ending = inferred_ending(store, cluster, run, before, now);
    }
    if (auto cancelled =
            resumed ? std::nullopt : cancelled_meanwhile(store, cluster, run, found.links, now)) {
        last.ending = std::move(cancelled);
    }
    if (!last.ending && !resumed) {
        found.why = fmt::format("how link {} ended is not yet known", before.value);
        return found;
    }
    const auto stop = resumed ? std::nullopt : stop_request(store, run.key);
    if (stop) {
        return ended(store, run.key, std::move(found),
                     Ending{static_cast<int>(ExitStatus::stopped), Cause::stopped,
                            stop->by.empty() ? "" : "by " + stop->by, now});
    }
    if (!found.has_own_ending) {
        take_saved(last);
    }
    found.verdict = resumed ? Verdict{Verdict::Decision::next_link, Restart::user, 0s, {}, "", {}}
                            : decide_next(run.request, found.links, now);
    if (resumed && last.ending) {
        found.verdict.why = "a user resumed it";
    }
    if (found.verdict.decision == Verdict::Decision::over) {
        const Ending ending = *found.verdict.ending;
        return ended(store, run.key, std::move(found), ending);
    }
    if (!resumed && lacks && lacks()) {
        found.is = Succession::Is::hold;
        return found;
    }
    if (self && !claims(store, run.key, link, *self)) {
        return leaving(std::move(found));
    }
    if (self) {
        fence(store, run.key, link, *self);
    }
    // A node that was cut off may have come back in the meantime and recorded an ending.
    if (const auto end =
            resumed ? std::nullopt : recorded_end(read_links(store, run.key, before))) {
        return ended(store, run.key, std::move(found), *end);
    }
    found.is = Succession::Is::link_start;
    return found;
}

std::optional<JobId> hand_over(Store& store, Cluster* cluster, Clock& clock, const Run& run,
                               NextLink next, Verdict& verdict)
{
    next.pause = verdict.pause;
    const auto recorded = job_of_link(store, run.key, next.link);
    const auto there = recorded ? std::optional(recorded->job) : std::nullopt;
    if (cluster == nullptr) {
        return there;
    }
    if (there && is_withdrawn(*cluster, *there)) {
        end_for(verdict, fmt::format("the job of its next link, {}, was cancelled", there->value),
                clock.now());
        return std::nullopt;
    }
    next.exclude = avoidable(*cluster, run.request, verdict.exclude);
    const bool is_new_plan = next.pause.count() > 0 || !next.exclude.empty();
    const auto job = there && is_new_plan ? replace_link(store, *cluster, clock, run, next, *there)
                                          : submit_link(store, *cluster, clock, run, next);
    if (!job && job.error().kind == Error::Kind::stopped) {
        end_for(verdict, job.error().text, clock.now());
        return std::nullopt;
    }
    return job ? std::optional(*job) : there;
}

} // namespace gpuq
