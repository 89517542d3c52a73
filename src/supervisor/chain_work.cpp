// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/chain_work.h"

#include "checkpoint/aside.h"
#include "checkpoint/keep.h"
#include "checkpoint/look.h"
#include "core/exit_status.h"
#include "core/layout.h"
#include "runs/evidence.h"
#include "runs/next_link.h"
#include "runs/record.h"
#include "runs/status.h"
#include "supervisor/check_command.h"
#include "supervisor/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <thread>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

/// Of more nobody will resume.
constexpr std::size_t k_most_sights = 6;
/// A file of before the run is not the run's: but clocks of file servers differ.
constexpr seconds k_clock_slack = 2s;
constexpr std::size_t k_most_kept = 2;
constexpr std::uint64_t k_small_enough_to_copy = std::uint64_t{1} << 30;
/// Between two looks at what was left behind, which tell that nobody writes any more.
constexpr auto k_settling = 400ms;
/// A predecessor that Slurm has over and whose heart has been silent for so long is dead.
constexpr seconds k_silence = 60s;

checkpoint::Place place_of(const Run& run, const std::string& root)
{
    const std::string& pattern = run.request.chain->checkpoint;
    return pattern.empty() ? checkpoint::Place{root + "/" + layout::checkpoints(run.key), "*"}
                           : checkpoint::Place{run.request.work_dir, pattern};
}

std::vector<checkpoint::Found> founds(const Sights& sights)
{
    std::vector<checkpoint::Found> found;
    for (const Seen& seen : sights) {
        found.push_back(seen.found);
    }
    return found;
}

/// What the check has said of the same bytes before.
std::optional<bool> known_validity(const Sights& before, const checkpoint::Found& found)
{
    const auto same = std::find_if(before.begin(), before.end(), [&](const Seen& seen) {
        return seen.found.path == found.path && seen.found.modified == found.modified &&
               seen.found.bytes == found.bytes && seen.found.inode == found.inode;
    });
    return same == before.end() ? std::nullopt : same->valid;
}

/// The place of the program as it is now, without the user's check.
Sights sights_at(const checkpoint::Place& place, const Run& run, const Sights& before)
{
    Sights sights;
    auto found = checkpoint::look(place, founds(before));
    for (checkpoint::Found& each : found ? *found : std::vector<checkpoint::Found>{}) {
        if (each.modified >= run.submitted_at - k_clock_slack && sights.size() < k_most_sights) {
            const auto valid = known_validity(before, each);
            sights.push_back({std::move(each), valid});
        }
    }
    return sights;
}

/// Asks the user's check about the newest whole one that it has not refused.
void ask_check(Sights& sights, const Run& run)
{
    const Chain& chain = *run.request.chain;
    for (Seen& seen : sights) {
        if (chain.valid.empty() || seen.found.verdict != checkpoint::Verdict::whole) {
            continue;
        }
        if (!seen.valid) {
            seen.valid = passes_check(chain.valid, seen.found.path, run);
        }
        if (*seen.valid) {
            return;
        }
    }
}

bool exists(Store& store, const std::string& path)
{
    return store.size(path).has_value();
}

/// How a link ended that could not say so itself; nothing while nobody knows.
std::optional<Ending> ending_without_word(Doors& doors, Store& store, const RunKey& key,
                                          LinkNumber link)
{
    Evidence seen{key};
    seen.link = link;
    if (auto run = read_run(store, key)) {
        seen.run = *std::move(run);
    }
    const auto text = store.read(layout::job_json(key, link));
    const auto job = text ? link_job_from_json(*text) : Result<LinkJob>(text.error());
    const auto journal = store.read(layout::journal(key, link));
    seen.journal = journal ? parse_journal(*journal) : std::vector<Event>{};
    const auto beat_text = store.read(layout::heartbeat(key, link));
    seen.heartbeat = beat_text ? parse_heartbeat(*beat_text) : std::nullopt;
    const auto stop = store.read(layout::inbox(key) + "/" + layout::k_stop_request);
    if (const auto request =
            stop ? stop_request_from_json(*stop) : Result<StopRequest>(stop.error())) {
        seen.stop = *request;
    }
    const Time now = doors.clock.now();
    if (seen.heartbeat && is_fresh(*seen.heartbeat, now)) {
        return std::nullopt; // its node may be cut off, and its program alive
    }
    auto cluster = doors.cluster();
    if (!cluster || !job) {
        return std::nullopt;
    }
    const auto found = (*cluster)->job(job->job);
    if (found && !is_over(found->state)) {
        return std::nullopt;
    }
    if (found) {
        seen.slurm = *found;
        return ending_from_slurm(seen, found->state, found->exit_status, std::nullopt,
                                 std::min(found->ends_at.value_or(now), now));
    }
    const bool silent = !seen.heartbeat || now - seen.heartbeat->at > k_silence;
    if (found.error().kind == Error::Kind::missing && silent) {
        return Ending{static_cast<int>(ExitStatus::lost), Cause::lost,
                      "Slurm no longer knows its job", now};
    }
    return std::nullopt;
}

/// What a link left that could not write it into its journal.
void take_what_it_saved(LinkPast& past, const Sights& sights, const Chain& chain)
{
    const Seen* newest = newest_usable(sights, chain);
    if (newest == nullptr || !past.started_at ||
        newest->found.modified + k_clock_slack < *past.started_at) {
        return;
    }
    past.checkpoint = newest->found.path;
    past.saved_after_notice =
        past.saved_after_notice || is_after_notice(newest->found.modified, past.noticed_at);
}

Sights kept_sights(Store& store, const Run& run)
{
    const checkpoint::Place place{store.root() + "/" + layout::kept(run.key), "*"};
    Sights sights = sights_at(place, run, {});
    return sights_at(place, run, sights); // nobody writes there: two looks settle it
}

bool was_usable(const Sights& before, const Seen& seen, const Chain& chain)
{
    return std::any_of(before.begin(), before.end(), [&](const Seen& each) {
        return each.found.path == seen.found.path && each.found.modified == seen.found.modified &&
               each.found.bytes == seen.found.bytes && is_usable(each, chain);
    });
}

/// A program that writes each checkpoint under a new name can only remove it, which a hard link
/// outlives; one that overwrites its last needs a copy.
void keep_newest(Store& store, const Run& run, const Sights& sights, const Seen& newest,
                 const Sights& before)
{
    const bool overwrites = std::any_of(before.begin(), before.end(), [&](const Seen& each) {
        return each.found.path == newest.found.path;
    });
    const bool perhaps = sights.size() == 1 && newest.found.bytes <= k_small_enough_to_copy;
    const std::string folder = layout::kept(run.key);
    const auto kept = checkpoint::keep(newest.found, store.root() + "/" + folder,
                                       overwrites || perhaps ? checkpoint::KeepBy::copy
                                                             : checkpoint::KeepBy::link);
    if (!kept) {
        return; // the program's own is still there
    }
    const Sights all = sights_at({store.root() + "/" + folder, "*"}, run, {});
    for (std::size_t i = k_most_kept; i < all.size(); ++i) {
        const std::string& path = all[i].found.path;
        const std::string name = folder + path.substr(path.rfind('/'));
        if (!store.remove(name)) { // a folder that is not empty
            (void)store.remove_tree(name);
        }
    }
}

/// What a look that was ended while it kept a checkpoint has left.
void forget_half_kept(Store& store, const RunKey& key)
{
    const std::string folder = layout::kept(key);
    const auto names = store.list(folder);
    for (const std::string& name : names ? *names : std::vector<std::string>{}) {
        if (name.starts_with('.') && !store.remove(folder + "/" + name)) {
            (void)store.remove_tree(folder + "/" + name);
        }
    }
}

Result<Run> run_of(Store& store, const Options& options)
{
    return read_run(store, options.key);
}

/// A link's job that somebody has cancelled while it waited ends the run.
bool is_withdrawn(Doors& doors, JobId job)
{
    auto cluster = doors.cluster();
    const auto found = cluster ? (*cluster)->job(job) : Result<Job>(cluster.error());
    return found ? found->state == JobState::cancelled : found.error().kind == Error::Kind::missing;
}

NextLink next_of(const Options& options, seconds length)
{
    NextLink next;
    next.link = LinkNumber{options.link.value + 1};
    next.length = length;
    next.after = options.job;
    return next;
}

std::optional<JobId> recorded(Store& store, const RunKey& key, LinkNumber link)
{
    const auto text = store.read(layout::job_json(key, link));
    const auto job = text ? link_job_from_json(*text) : Result<LinkJob>(text.error());
    return job ? std::optional(job->job) : std::nullopt;
}

/// Nodes to avoid, where the queue has enough others: nothing would ever start without one.
std::vector<std::string> avoidable(Cluster& cluster, const Request& request,
                                   const std::vector<std::string>& nodes)
{
    const auto queues = nodes.empty() ? Result<std::vector<Partition>>(std::vector<Partition>{})
                                      : cluster.partitions();
    for (const Partition& queue : queues ? *queues : std::vector<Partition>{}) {
        const int others = queue.most_nodes.value_or(0) - static_cast<int>(nodes.size());
        if (queue.name == request.queue && others >= request.nodes) {
            return nodes;
        }
    }
    return {};
}

/// The job that was submitted early does not know of a pause, nor which node has failed since: it
/// is replaced. The new one first: a crash in between leaves two jobs, of which one claims the
/// link.
Result<JobId> replace(Store& store, Cluster& cluster, Clock& clock, const Run& run,
                      const NextLink& next, JobId old)
{
    TRY(store.remove(layout::job_json(run.key, next.link)));
    TRY(cluster.cancel(old));
    return submit_link(store, cluster, clock, run, next);
}

void go_on(Doors& doors, Store& store, const Options& options, const Run& run, Settled& settled,
           seconds length)
{
    NextLink next = next_of(options, length);
    next.pause = settled.verdict.pause;
    const auto there = recorded(store, run.key, next.link);
    if (there && is_withdrawn(doors, *there)) {
        settled.verdict.go = Verdict::Go::over;
        settled.verdict.ending =
            Ending{static_cast<int>(ExitStatus::stopped), Cause::cancelled,
                   fmt::format("the job of its next link, {}, was cancelled", there->value),
                   doors.clock.now()};
        return;
    }
    auto cluster = doors.cluster();
    if (!cluster) {
        settled.next = there;
        return; // whoever looks at the run next submits it
    }
    next.exclude = avoidable(**cluster, run.request, settled.verdict.exclude);
    const bool is_new_plan = next.pause.count() > 0 || !next.exclude.empty();
    const auto job = there && is_new_plan
                         ? replace(store, **cluster, doors.clock, run, next, *there)
                         : submit_link(store, **cluster, doors.clock, run, next);
    settled.next = job ? std::optional(*job) : there;
}

} // namespace

bool is_usable(const Seen& seen, const Chain& chain)
{
    return seen.found.verdict == checkpoint::Verdict::whole &&
           (chain.valid.empty() || seen.valid == true);
}

const Seen* newest_usable(const Sights& sights, const Chain& chain)
{
    const auto found = std::find_if(sights.begin(), sights.end(),
                                    [&](const Seen& seen) { return is_usable(seen, chain); });
    return found == sights.end() ? nullptr : &*found;
}

Sights look_at_checkpoints(Store& store, const Run& run, const Sights& before)
{
    Sights sights = sights_at(place_of(run, store.root()), run, before);
    ask_check(sights, run);
    const Seen* newest = newest_usable(sights, *run.request.chain);
    if (newest != nullptr && !was_usable(before, *newest, *run.request.chain)) {
        keep_newest(store, run, sights, *newest, before);
    }
    return sights;
}

Turn first_turn(const Request& request)
{
    Turn turn;
    turn.length = next_length(request, {}, Time{});
    turn.lead = notice_lead(turn.length, {});
    return turn;
}

Judged judge_predecessor(Doors& doors, const Options& options)
{
    Judged judged;
    auto store = doors.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        judged.turn = Turn{}; // the supervisor says what is wrong
        return judged;
    }
    if (!run->request.chain) {
        judged.turn = first_turn(run->request);
        return judged;
    }
    const LinkNumber before{options.link.value - 1};
    std::vector<LinkPast> links = read_links(**store, run->key, before);
    LinkPast& last = links.back();
    const auto own = (*store)->read(layout::job_json(run->key, options.link));
    const auto own_job = own ? link_job_from_json(*own) : Result<LinkJob>(own.error());
    const bool resumed = own_job && own_job->resumed;
    const bool had_word = last.ending.has_value();
    if (had_word && !last.ending->continues && !resumed) {
        judged.leave = true;
        return judged;
    }
    if (exists(**store, layout::ended_json(run->key)) && !resumed) {
        judged.leave = true;
        return judged;
    }
    if (!had_word) {
        last.ending = ending_without_word(doors, **store, run->key, before);
    }
    if (!last.ending && !resumed) {
        judged.wait = fmt::format("nobody can say yet how link {} ended", before.value);
        return judged;
    }
    const checkpoint::Place place = place_of(*run, (*store)->root());
    Sights sights = sights_at(place, *run, {});
    std::this_thread::sleep_for(k_settling);
    sights = sights_at(place, *run, sights);
    ask_check(sights, *run);
    if (!had_word) {
        take_what_it_saved(last, sights, *run->request.chain);
    }
    const Time now = doors.clock.now();
    Verdict verdict = resumed ? Verdict{Verdict::Go::on, Restart::user, 0s, {}, "", {}}
                              : judge(run->request, links, now);
    if (resumed && last.ending) {
        verdict.why = "somebody let it go on";
    }
    if (verdict.go == Verdict::Go::wait) {
        judged.wait = verdict.why;
        return judged;
    }
    if (verdict.go == Verdict::Go::over) {
        (void)(*store)->write_once(layout::ended_json(run->key), to_json(*verdict.ending));
        judged.leave = true;
        return judged;
    }
    (void)checkpoint::put_aside(founds(sights));
    const Sights kept = kept_sights(**store, *run);
    const Chain& chain = *run->request.chain;
    const Seen* best = newest_usable(sights, chain);
    const Seen* spare = newest_usable(kept, chain);
    if (spare != nullptr && (best == nullptr || spare->found.modified > best->found.modified)) {
        best = spare;
    }
    const bool was_saved =
        std::any_of(links.begin(), links.end(), [](const LinkPast& link) { return link.saved(); });
    if (best == nullptr && was_saved) {
        const Ending ending{static_cast<int>(ExitStatus::internal), Cause::not_started,
                            "none of its checkpoints is whole any more: it does not begin again "
                            "from the start by itself",
                            now};
        (void)(*store)->write_once(layout::ended_json(run->key), to_json(ending));
        judged.leave = true;
        return judged;
    }
    Turn turn;
    turn.restart = verdict.restart;
    turn.checkpoint = best == nullptr ? "" : best->found.path;
    turn.length = next_length(run->request, links, now);
    turn.lead = notice_lead(turn.length, links);
    turn.why = verdict.why;
    if (!had_word) {
        turn.previous = last.ending;
    }
    judged.turn = std::move(turn);
    return judged;
}

std::string submit_next(Doors& doors, const Options& options, const Turn& turn)
{
    auto store = doors.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        return "later " + run.error().text;
    }
    std::vector<LinkPast> links = read_links(**store, run->key, options.link);
    // As if this link had taken all of its time.
    const Time now = doors.clock.now();
    LinkPast& self = links.back();
    self.started_at = self.started_at.value_or(now);
    self.ending = Ending{0, Cause::time_limit, "", *self.started_at + turn.length};
    const seconds length = next_length(run->request, links, *self.started_at + turn.length);
    const auto& most = run->request.chain->max_links;
    if (length < 5s || (most && options.link.value >= *most)) {
        return "none";
    }
    auto cluster = doors.cluster();
    if (!cluster) {
        return "later " + cluster.error().text;
    }
    NextLink next = next_of(options, length);
    next.exclude = avoidable(**cluster, run->request, failed_nodes(links));
    const auto job = submit_link(**store, **cluster, doors.clock, *run, next);
    return job ? fmt::format("job {}", job->value) : "later " + job.error().text;
}

Settled settle(Doors& doors, const Options& options, LinkPast self, const Sights& before,
               bool by_itself)
{
    Settled settled;
    settled.verdict.go = Verdict::Go::over;
    settled.verdict.ending = self.ending;
    auto store = doors.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        return settled;
    }
    forget_half_kept(**store, run->key);
    settled.sights = look_at_checkpoints(**store, *run, before);
    const bool unsettled = !settled.sights.empty() &&
                           settled.sights.front().found.verdict == checkpoint::Verdict::unsettled;
    if (by_itself && unsettled) {
        std::this_thread::sleep_for(k_settling);
        settled.sights = look_at_checkpoints(**store, *run, settled.sights);
    }
    take_what_it_saved(self, settled.sights, *run->request.chain);
    std::vector<LinkPast> links = read_links(**store, run->key, options.link);
    self.resumed = links.back().resumed;
    links.back() = std::move(self);
    const Time now = doors.clock.now();
    settled.verdict = judge(run->request, links, now);
    if (settled.verdict.go == Verdict::Go::on) {
        go_on(doors, **store, options, *run, settled, next_length(run->request, links, now));
    }
    if (settled.verdict.go == Verdict::Go::over) {
        if (auto cluster = doors.cluster()) {
            (void)withdraw_link(**store, **cluster, *run, LinkNumber{options.link.value + 1});
        }
    }
    return settled;
}

// Texts between processes.

std::string packed(const Sights& sights)
{
    std::vector<std::string> fields;
    for (const Seen& seen : sights) {
        fields.push_back(seen.found.path);
        fields.push_back(fmt::format("{}", static_cast<int>(seen.found.verdict)));
        fields.push_back(seen.found.why);
        fields.push_back(fmt::format("{}", seen.found.modified.time_since_epoch().count()));
        fields.push_back(fmt::format("{}", seen.found.bytes));
        fields.push_back(fmt::format("{}", seen.found.inode));
        fields.push_back(seen.found.step ? fmt::format("{}", *seen.found.step) : "");
        fields.push_back(!seen.valid ? "" : *seen.valid ? "1" : "0");
    }
    return packed_fields(fields);
}

namespace {

template <typename Number>
Number number_in(const std::string& text)
{
    Number number{};
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

constexpr std::size_t k_fields_of_a_sight = 8;

std::string packed_ending(const std::optional<Ending>& ending)
{
    return ending ? to_json(*ending) : "";
}

std::optional<Ending> ending_in(const std::string& text)
{
    auto ending = ending_from_json(text);
    return ending ? std::optional(*std::move(ending)) : std::nullopt;
}

} // namespace

Sights sights_in(std::string_view packed)
{
    Sights sights;
    const std::vector<std::string> fields = fields_in(packed);
    for (std::size_t i = 0; i + k_fields_of_a_sight <= fields.size(); i += k_fields_of_a_sight) {
        Seen seen;
        seen.found.path = fields[i];
        seen.found.verdict = static_cast<checkpoint::Verdict>(number_in<int>(fields[i + 1]));
        seen.found.why = fields[i + 2];
        seen.found.modified =
            Time{std::chrono::microseconds{number_in<std::int64_t>(fields[i + 3])}};
        seen.found.bytes = number_in<std::uint64_t>(fields[i + 4]);
        seen.found.inode = number_in<std::uint64_t>(fields[i + 5]);
        if (!fields[i + 6].empty()) {
            seen.found.step = number_in<std::uint64_t>(fields[i + 6]);
        }
        if (!fields[i + 7].empty()) {
            seen.valid = fields[i + 7] == "1";
        }
        sights.push_back(std::move(seen));
    }
    return sights;
}

std::string packed(const Judged& judged)
{
    if (!judged.turn) {
        return packed_fields({judged.leave ? "leave" : "wait", judged.wait});
    }
    const Turn& turn = *judged.turn;
    return packed_fields({"turn", std::string(word(turn.restart)), turn.checkpoint,
                          fmt::format("{}", turn.length.count()),
                          fmt::format("{}", turn.lead.count()), turn.why,
                          packed_ending(turn.previous)});
}

std::optional<Judged> judged_in(std::string_view packed)
{
    const std::vector<std::string> fields = fields_in(packed);
    Judged judged;
    if (fields.size() == 2) {
        judged.leave = fields[0] == "leave";
        judged.wait = fields[1];
        return judged;
    }
    if (fields.size() != 7) {
        return std::nullopt;
    }
    Turn turn;
    turn.restart = restart_from_word(fields[1]).value_or(Restart::node);
    turn.checkpoint = fields[2];
    turn.length = seconds(number_in<std::int64_t>(fields[3]));
    turn.lead = seconds(number_in<std::int64_t>(fields[4]));
    turn.why = fields[5];
    turn.previous = ending_in(fields[6]);
    judged.turn = std::move(turn);
    return judged;
}

std::string packed(const Settled& settled)
{
    return packed_fields({settled.verdict.go == Verdict::Go::on ? "on" : "over",
                          settled.verdict.why, packed_ending(settled.verdict.ending),
                          settled.next ? fmt::format("{}", settled.next->value) : "",
                          packed(settled.sights)});
}

std::optional<Settled> settled_in(std::string_view packed)
{
    const std::vector<std::string> fields = fields_in(packed);
    if (fields.size() != 5) {
        return std::nullopt;
    }
    Settled settled;
    settled.verdict.go = fields[0] == "on" ? Verdict::Go::on : Verdict::Go::over;
    settled.verdict.why = fields[1];
    settled.verdict.ending = ending_in(fields[2]);
    if (!fields[3].empty()) {
        settled.next = JobId{number_in<std::uint32_t>(fields[3])};
    }
    settled.sights = sights_in(fields[4]);
    return settled;
}

} // namespace gpuq::supervisor
