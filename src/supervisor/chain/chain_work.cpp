// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/chain/chain_work.h"

#include "checkpoint/aside.h"
#include "checkpoint/find.h"
#include "checkpoint/keep.h"
#include "core/exit_status.h"
#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/next_link.h"
#include "runs/records/record.h"
#include "runs/succession.h"
#include "supervisor/base/check_command.h"
#include "supervisor/base/keytab.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sys/stat.h>
#include <thread>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

/// Number of checkpoints considered: the run never resumes from older ones.
constexpr std::size_t k_most_checkpoints = 6;
/// Files older than the run are not its own; the slack allows for differing clocks of file servers.
constexpr seconds k_clock_slack = 2s;
constexpr std::size_t k_most_kept = 2;
constexpr std::uint64_t k_small_enough_to_copy = std::uint64_t{1} << 30;
/// Interval between two scans that show whether the remaining files are still being written.
constexpr auto k_settling = 400ms;

checkpoint::Place place_of(const Run& run, const std::string& root)
{
    const std::string& pattern = run.request.chain->checkpoint;
    return pattern.empty() ? checkpoint::Place{root + "/" + layout::checkpoints(run.key), "*"}
                           : checkpoint::Place{run.request.work_dir, pattern};
}

std::vector<checkpoint::Found> founds(const CheckpointSet& candidates)
{
    std::vector<checkpoint::Found> found;
    for (const CheckedCheckpoint& checked : candidates) {
        found.push_back(checked.found);
    }
    return found;
}

/// The earlier result of the check for the same bytes.
std::optional<bool> known_validity(const CheckpointSet& before, const checkpoint::Found& found)
{
    const auto same =
        std::find_if(before.begin(), before.end(), [&](const CheckedCheckpoint& checked) {
            return checked.found.path == found.path && checked.found.modified == found.modified &&
                   checked.found.bytes == found.bytes && checked.found.inode == found.inode;
        });
    return same == before.end() ? std::nullopt : same->valid;
}

/// Scans the program's checkpoint location, without the user's check.
CheckpointSet checkpoints_at(const checkpoint::Place& place, const Run& run,
                             const CheckpointSet& before)
{
    CheckpointSet candidates;
    auto found = checkpoint::find_checkpoints(place, founds(before));
    for (checkpoint::Found& each : found ? *found : std::vector<checkpoint::Found>{}) {
        if (each.modified >= run.submitted_at - k_clock_slack &&
            candidates.size() < k_most_checkpoints) {
            const auto valid = known_validity(before, each);
            candidates.push_back({std::move(each), valid});
        }
    }
    return candidates;
}

/// Runs the user's check on the newest complete checkpoint that it has not rejected.
void run_check_command(CheckpointSet& candidates, const Run& run)
{
    const Chain& chain = *run.request.chain;
    for (CheckedCheckpoint& checked : candidates) {
        if (chain.valid.empty() || checked.found.verdict != checkpoint::Verdict::whole) {
            continue;
        }
        if (!checked.valid) {
            checked.valid = passes_check(chain.valid, checked.found.path, run);
        }
        if (*checked.valid) {
            return;
        }
    }
}

/// Adds the checkpoint of a link that could not record it in its journal.
void take_saved(LinkPast& past, const CheckpointSet& candidates, const Chain& chain)
{
    const CheckedCheckpoint* newest = newest_usable(candidates, chain);
    if (newest == nullptr || !past.started_at ||
        newest->found.modified + k_clock_slack < *past.started_at) {
        return;
    }
    past.checkpoint = newest->found.path;
    past.saved_after_notice =
        past.saved_after_notice || is_after_notice(newest->found.modified, past.noticed_at);
}

CheckpointSet kept_checkpoints(Store& store, const Run& run)
{
    const checkpoint::Place place{store.root() + "/" + layout::kept(run.key), "*"};
    CheckpointSet candidates = checkpoints_at(place, run, {});
    return checkpoints_at(place, run, candidates); // no process writes to it: two scans settle it
}

bool was_usable(const CheckpointSet& before, const CheckedCheckpoint& checked, const Chain& chain)
{
    return std::any_of(before.begin(), before.end(), [&](const CheckedCheckpoint& each) {
        return each.found.path == checked.found.path &&
               each.found.modified == checked.found.modified &&
               each.found.bytes == checked.found.bytes && is_usable(each, chain);
    });
}

/// A hard link is enough for a program that writes each checkpoint under a new name, because it can
/// only remove it. A program that overwrites its last checkpoint needs a copy; while it is not
/// known whether it does, a small checkpoint is copied.
void keep_newest(Store& store, const Run& run, const CheckpointSet& candidates,
                 const CheckedCheckpoint& newest, const CheckpointSet& before)
{
    const bool overwrites =
        std::any_of(before.begin(), before.end(), [&](const CheckedCheckpoint& each) {
            return each.found.path == newest.found.path;
        });
    const bool perhaps = candidates.size() == 1 && newest.found.bytes <= k_small_enough_to_copy;
    const std::string directory = layout::kept(run.key);
    const auto kept = checkpoint::keep(newest.found, store.root() + "/" + directory,
                                       overwrites || perhaps ? checkpoint::KeepBy::copy
                                                             : checkpoint::KeepBy::link);
    if (!kept) {
        return; // the program's own copy still exists
    }
    const CheckpointSet all = checkpoints_at({store.root() + "/" + directory, "*"}, run, {});
    for (std::size_t i = k_most_kept; i < all.size(); ++i) {
        const std::string& path = all[i].found.path;
        const std::string name = directory + path.substr(path.rfind('/'));
        if (!store.remove(name)) { // a directory that is not empty
            (void)store.remove_tree(name);
        }
    }
}

/// Removes the leftovers of a scan that was killed while it kept a checkpoint.
void forget_half_kept(Store& store, const RunKey& key)
{
    const std::string directory = layout::kept(key);
    const auto names = store.list(directory);
    for (const std::string& name : names ? *names : std::vector<std::string>{}) {
        if (name.starts_with('.') && !store.remove(directory + "/" + name)) {
            (void)store.remove_tree(directory + "/" + name);
        }
    }
}

/// Considers the program itself and the scripts among its arguments, but not the files they import.
std::string changed_since(Time then, const Request& request)
{
    constexpr std::array<std::string_view, 4> k_scripts{".py", ".sh", ".jl", ".R"};
    std::string names;
    for (const std::string& word : request.program) {
        const std::filesystem::path path = std::filesystem::path(request.work_dir) / word;
        const bool is_script =
            std::find(k_scripts.begin(), k_scripts.end(), path.extension()) != k_scripts.end();
        struct stat file {};
        if ((&word == &request.program.front() || is_script) && ::stat(path.c_str(), &file) == 0 &&
            S_ISREG(file.st_mode) && std::chrono::system_clock::from_time_t(file.st_mtime) > then) {
            names += (names.empty() ? "" : ", ") + word;
        }
    }
    return names;
}

Result<Run> run_of(Store& store, const Options& options)
{
    return read_run(store, options.key);
}

NextLink next_of(const Options& options, seconds length)
{
    NextLink next;
    next.link = LinkNumber{options.link.value + 1};
    next.length = length;
    next.after = options.job;
    return next;
}

Ending ended_for_its_ticket(Time now)
{
    return {static_cast<int>(ExitStatus::stopped), Cause::not_started,
            "its Kerberos ticket has expired (--credentials=fail)", now};
}

std::optional<WhenShort> short_of(Services& services, Store& store, const Run& run, LinkNumber link)
{
    return services.secrets == nullptr
               ? std::nullopt
               : short_of_ticket(store, *services.secrets, run.key,
                                 length_of(*run.request.chain, link), services.clock.now());
}

/// Errors are ignored here: they are reported when the program's ticket is fetched, or by the hold.
void query_keytab(Services& services, Store& store, const Run& run)
{
    const auto text = store.read(credential_plan_json(run.key));
    const auto plan =
        text ? credential_plan_from_json(*text) : Result<CredentialPlan>(text.error());
    if (plan && services.secrets != nullptr) {
        (void)login_for_store(*services.secrets, *plan, services.clock.now());
    }
}

/// This link must not start without a ticket: it waits as another job, which holds no GPUs, or the
/// run ends.
PredecessorCheck held(Services& services, Store& store, Cluster* cluster, const Run& run,
                      const Succession& found, const Options& options)
{
    PredecessorCheck predecessor;
    const Time now = services.clock.now();
    if (short_of(services, store, run, options.link) == WhenShort::fail) {
        (void)store.write_once(layout::ended_json(run.key), to_json(ended_for_its_ticket(now)));
        predecessor.leave = true;
        return predecessor;
    }
    NextLink next;
    next.link = options.link;
    next.length = next_length(run.request, found.links, now);
    const auto job = cluster == nullptr
                         ? Result<JobId>(fail(Error::Kind::unreachable, "Slurm does not answer"))
                         : hold_link(store, *cluster, services.clock, run, next);
    predecessor.leave = job.has_value();
    predecessor.wait = job ? "" : job.error().text;
    return predecessor;
}

} // namespace

bool is_usable(const CheckedCheckpoint& checked, const Chain& chain)
{
    return checked.found.verdict == checkpoint::Verdict::whole &&
           (chain.valid.empty() || checked.valid == true);
}

const CheckedCheckpoint* newest_usable(const CheckpointSet& candidates, const Chain& chain)
{
    const auto found =
        std::find_if(candidates.begin(), candidates.end(),
                     [&](const CheckedCheckpoint& checked) { return is_usable(checked, chain); });
    return found == candidates.end() ? nullptr : &*found;
}

CheckpointSet find_checkpoints(Store& store, const Run& run, const CheckpointSet& before)
{
    CheckpointSet candidates = checkpoints_at(place_of(run, store.root()), run, before);
    run_check_command(candidates, run);
    const CheckedCheckpoint* newest = newest_usable(candidates, *run.request.chain);
    if (newest != nullptr && !was_usable(before, *newest, *run.request.chain)) {
        keep_newest(store, run, candidates, *newest, before);
    }
    return candidates;
}

std::optional<CheckpointSet> find_checkpoints_again(Services& services, const Options& options,
                                                    const CheckpointSet& before)
{
    auto store = services.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    return run ? std::optional(find_checkpoints(**store, *run, before)) : std::nullopt;
}

LinkStart first_link_start(const Request& request, Time now)
{
    LinkStart link_start;
    link_start.length = next_length(request, {}, now);
    link_start.lead = notice_lead(link_start.length, {});
    return link_start;
}

PredecessorCheck check_predecessor(Services& services, const Options& options)
{
    PredecessorCheck predecessor;
    auto store = services.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        predecessor.link_start = LinkStart{}; // the supervisor reports the error
        return predecessor;
    }
    if (!run->request.chain) {
        predecessor.link_start = first_link_start(run->request, services.clock.now());
        return predecessor;
    }
    const Chain& chain = *run->request.chain;
    const Time now = services.clock.now();
    std::optional<CheckpointSet> candidates;
    const auto find_now = [&] {
        const checkpoint::Place place = place_of(*run, (*store)->root());
        candidates = checkpoints_at(place, *run, {});
        std::this_thread::sleep_for(k_settling);
        candidates = checkpoints_at(place, *run, *candidates);
        run_check_command(*candidates, *run);
    };
    auto cluster = services.cluster();
    const Succession found = succeed(
        **store, cluster ? cluster->get() : nullptr, *run, options.link, options.job, now,
        [&](LinkPast& last) {
            find_now();
            take_saved(last, *candidates, chain);
        },
        [&] {
            query_keytab(services, **store, *run);
            return short_of(services, **store, *run, options.link).has_value();
        });
    if (found.is == Succession::Is::hold) {
        return held(services, **store, cluster ? cluster->get() : nullptr, *run, found, options);
    }
    predecessor.leave = found.is == Succession::Is::leave;
    predecessor.wait = found.why;
    if (found.is != Succession::Is::link_start) {
        return predecessor;
    }
    if (!candidates) {
        find_now();
    }
    (void)checkpoint::put_aside(founds(*candidates));
    const CheckpointSet kept = kept_checkpoints(**store, *run);
    const CheckedCheckpoint* best = newest_usable(*candidates, chain);
    const CheckedCheckpoint* spare = newest_usable(kept, chain);
    if (spare != nullptr && (best == nullptr || spare->found.modified > best->found.modified)) {
        best = spare;
    }
    const bool was_saved = std::any_of(found.links.begin(), found.links.end(),
                                       [](const LinkPast& link) { return link.saved(); });
    if (best == nullptr && was_saved) {
        const Ending ending{static_cast<int>(ExitStatus::internal), Cause::not_started,
                            "none of its checkpoints is complete any more: it does not restart "
                            "from scratch automatically",
                            now};
        (void)(*store)->write_once(layout::ended_json(run->key), to_json(ending));
        predecessor.leave = true;
        return predecessor;
    }
    LinkStart link_start;
    link_start.restart = found.verdict.restart;
    link_start.checkpoint = best == nullptr ? "" : best->found.path;
    link_start.length = next_length(run->request, found.links, now);
    link_start.lead = notice_lead(link_start.length, found.links);
    link_start.why = found.verdict.why;
    if (!found.has_own_ending) {
        link_start.previous = found.links.back().ending;
    }
    if (!(*store)->size(layout::snapshot(run->key))) { // else it gets the unchanged files
        link_start.changed =
            changed_since(found.links.back().started_at.value_or(run->submitted_at), run->request);
    }
    predecessor.link_start = std::move(link_start);
    return predecessor;
}

NextSubmission submit_next(Services& services, const Options& options, seconds own_length)
{
    auto store = services.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        return {std::nullopt, run.error().text};
    }
    std::vector<LinkPast> links = read_links(**store, run->key, options.link);
    // Assume that this link uses all of its time.
    const Time now = services.clock.now();
    LinkPast& self = links.back();
    self.started_at = self.started_at.value_or(now);
    self.ending = Ending{0, Cause::time_limit, "", *self.started_at + own_length};
    const seconds length = next_length(run->request, links, *self.started_at + own_length);
    const auto& most = run->request.chain->max_links;
    if (length < 5s || (most && options.link.value >= *most)) {
        return {};
    }
    auto cluster = services.cluster();
    if (!cluster) {
        return {std::nullopt, cluster.error().text};
    }
    NextLink next = next_of(options, length);
    next.exclude = avoidable(**cluster, run->request, failed_nodes(links));
    const auto job = submit_link(**store, **cluster, services.clock, *run, next);
    return job ? NextSubmission{*job, std::nullopt}
               : NextSubmission{std::nullopt, job.error().text};
}

LinkOutcome conclude(Services& services, const Options& options, LinkPast self,
                     const CheckpointSet& before, bool by_itself)
{
    LinkOutcome outcome;
    outcome.verdict.decision = Verdict::Decision::over;
    outcome.verdict.ending = self.ending;
    auto store = services.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        outcome.verdict = Verdict{}; // cannot be determined here
        return outcome;
    }
    forget_half_kept(**store, run->key);
    outcome.candidates = find_checkpoints(**store, *run, before);
    const bool unsettled =
        !outcome.candidates.empty() &&
        outcome.candidates.front().found.verdict == checkpoint::Verdict::unsettled;
    if (by_itself && unsettled) {
        std::this_thread::sleep_for(k_settling);
        outcome.candidates = find_checkpoints(**store, *run, outcome.candidates);
    }
    take_saved(self, outcome.candidates, *run->request.chain);
    std::vector<LinkPast> links = read_links(**store, run->key, options.link);
    self.resumed = links.back().resumed;
    links.back() = std::move(self);
    const Time now = services.clock.now();
    outcome.verdict = decide_next(run->request, links, now);
    const LinkNumber next_link{options.link.value + 1};
    const auto without = outcome.verdict.decision == Verdict::Decision::next_link
                             ? short_of(services, **store, *run, next_link)
                             : std::nullopt;
    if (without == WhenShort::fail) {
        outcome.verdict.decision = Verdict::Decision::over;
        outcome.verdict.ending = ended_for_its_ticket(now);
    } else if (without == WhenShort::hold &&
               (*store)->write(held_json(run->key), to_json(Held{next_link, now}))) {
        outcome.verdict.pause = k_held_for;
    }
    if (outcome.verdict.decision == Verdict::Decision::next_link) {
        auto cluster = services.cluster();
        outcome.next =
            hand_over(**store, cluster ? cluster->get() : nullptr, services.clock, *run,
                      next_of(options, next_length(run->request, links, now)), outcome.verdict);
    }
    forget_half_kept(**store, run->key); // from a helper that was killed late
    return outcome;
}

void withdraw_next(Services& services, const Options& options)
{
    auto store = services.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run || !run->request.chain) {
        return;
    }
    if (auto cluster = services.cluster()) {
        (void)withdraw_link(**store, **cluster, *run, LinkNumber{options.link.value + 1});
    }
}

} // namespace gpuq::supervisor
