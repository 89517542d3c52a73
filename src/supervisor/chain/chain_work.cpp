// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/chain/chain_work.h"

#include "checkpoint/aside.h"
#include "checkpoint/keep.h"
#include "checkpoint/look.h"
#include "core/exit_status.h"
#include "core/layout.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/next_link.h"
#include "runs/records/record.h"
#include "runs/succession.h"
#include "supervisor/base/check_command.h"
#include "supervisor/base/fields.h"
#include "supervisor/base/keytab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <sys/stat.h>
#include <thread>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

/// Number of checkpoints considered: the run never resumes from older ones.
constexpr std::size_t k_most_sights = 6;
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

std::vector<checkpoint::Found> founds(const Sights& sights)
{
    std::vector<checkpoint::Found> found;
    for (const Seen& seen : sights) {
        found.push_back(seen.found);
    }
    return found;
}

/// The earlier result of the check for the same bytes.
std::optional<bool> known_validity(const Sights& before, const checkpoint::Found& found)
{
    const auto same = std::find_if(before.begin(), before.end(), [&](const Seen& seen) {
        return seen.found.path == found.path && seen.found.modified == found.modified &&
               seen.found.bytes == found.bytes && seen.found.inode == found.inode;
    });
    return same == before.end() ? std::nullopt : same->valid;
}

/// Scans the program's checkpoint location, without the user's check.
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

/// Runs the user's check on the newest complete checkpoint that it has not rejected.
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

/// Adds the checkpoint of a link that could not record it in its journal.
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
    return sights_at(place, run, sights); // no process writes to it: two scans settle it
}

bool was_usable(const Sights& before, const Seen& seen, const Chain& chain)
{
    return std::any_of(before.begin(), before.end(), [&](const Seen& each) {
        return each.found.path == seen.found.path && each.found.modified == seen.found.modified &&
               each.found.bytes == seen.found.bytes && is_usable(each, chain);
    });
}

/// A hard link is enough for a program that writes each checkpoint under a new name, because it can
/// only remove it. A program that overwrites its last checkpoint needs a copy; while it is not
/// known whether it does, a small checkpoint is copied.
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
        return; // the program's own copy still exists
    }
    const Sights all = sights_at({store.root() + "/" + folder, "*"}, run, {});
    for (std::size_t i = k_most_kept; i < all.size(); ++i) {
        const std::string& path = all[i].found.path;
        const std::string name = folder + path.substr(path.rfind('/'));
        if (!store.remove(name)) { // a directory that is not empty
            (void)store.remove_tree(name);
        }
    }
}

/// Removes the leftovers of a scan that was killed while it kept a checkpoint.
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

std::optional<WhenShort> short_of(Doors& doors, Store& store, const Run& run, LinkNumber link)
{
    return doors.secrets == nullptr
               ? std::nullopt
               : short_of_ticket(store, *doors.secrets, run.key,
                                 length_of(*run.request.chain, link), doors.clock.now());
}

/// Errors are ignored here: they are reported when the program's ticket is fetched, or by the hold.
void ask_keytab(Doors& doors, Store& store, const Run& run)
{
    const auto text = store.read(credential_plan_json(run.key));
    const auto plan =
        text ? credential_plan_from_json(*text) : Result<CredentialPlan>(text.error());
    if (plan && doors.secrets != nullptr) {
        (void)login_for_store(*doors.secrets, *plan, doors.clock.now());
    }
}

/// This link must not start without a ticket: it waits as another job, which holds no GPUs, or the
/// run ends.
Judged held(Doors& doors, Store& store, Cluster* cluster, const Run& run, const Succession& found,
            const Options& options)
{
    Judged judged;
    const Time now = doors.clock.now();
    if (short_of(doors, store, run, options.link) == WhenShort::fail) {
        (void)store.write_once(layout::ended_json(run.key), to_json(ended_for_its_ticket(now)));
        judged.leave = true;
        return judged;
    }
    NextLink next;
    next.link = options.link;
    next.length = next_length(run.request, found.links, now);
    const auto job = cluster == nullptr
                         ? Result<JobId>(fail(Error::Kind::unreachable, "Slurm does not answer"))
                         : hold_link(store, *cluster, doors.clock, run, next);
    judged.leave = job.has_value();
    judged.wait = job ? "" : job.error().text;
    return judged;
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

std::string look_again(Doors& doors, const Options& options, const Sights& before)
{
    auto store = doors.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    return run ? packed(look_at_checkpoints(**store, *run, before)) : "";
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
        judged.turn = Turn{}; // the supervisor reports the error
        return judged;
    }
    if (!run->request.chain) {
        judged.turn = first_turn(run->request);
        return judged;
    }
    const Chain& chain = *run->request.chain;
    const Time now = doors.clock.now();
    std::optional<Sights> sights;
    const auto look_around = [&] {
        const checkpoint::Place place = place_of(*run, (*store)->root());
        sights = sights_at(place, *run, {});
        std::this_thread::sleep_for(k_settling);
        sights = sights_at(place, *run, *sights);
        ask_check(*sights, *run);
    };
    auto cluster = doors.cluster();
    const Succession found = succeed(
        **store, cluster ? cluster->get() : nullptr, *run, options.link, options.job, now,
        [&](LinkPast& last) {
            look_around();
            take_what_it_saved(last, *sights, chain);
        },
        [&] {
            ask_keytab(doors, **store, *run);
            return short_of(doors, **store, *run, options.link).has_value();
        });
    if (found.is == Succession::Is::hold) {
        return held(doors, **store, cluster ? cluster->get() : nullptr, *run, found, options);
    }
    judged.leave = found.is == Succession::Is::leave;
    judged.wait = found.why;
    if (found.is != Succession::Is::turn) {
        return judged;
    }
    if (!sights) {
        look_around();
    }
    (void)checkpoint::put_aside(founds(*sights));
    const Sights kept = kept_sights(**store, *run);
    const Seen* best = newest_usable(*sights, chain);
    const Seen* spare = newest_usable(kept, chain);
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
        judged.leave = true;
        return judged;
    }
    Turn turn;
    turn.restart = found.verdict.restart;
    turn.checkpoint = best == nullptr ? "" : best->found.path;
    turn.length = next_length(run->request, found.links, now);
    turn.lead = notice_lead(turn.length, found.links);
    turn.why = found.verdict.why;
    if (!found.had_word) {
        turn.previous = found.links.back().ending;
    }
    turn.changed =
        changed_since(found.links.back().started_at.value_or(run->submitted_at), run->request);
    judged.turn = std::move(turn);
    return judged;
}

std::string submit_next(Doors& doors, const Options& options, seconds own_length)
{
    auto store = doors.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run) {
        return "later " + run.error().text;
    }
    std::vector<LinkPast> links = read_links(**store, run->key, options.link);
    // Assume that this link uses all of its time.
    const Time now = doors.clock.now();
    LinkPast& self = links.back();
    self.started_at = self.started_at.value_or(now);
    self.ending = Ending{0, Cause::time_limit, "", *self.started_at + own_length};
    const seconds length = next_length(run->request, links, *self.started_at + own_length);
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
        settled.verdict = Verdict{}; // cannot be determined here
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
    const LinkNumber next_link{options.link.value + 1};
    const auto without = settled.verdict.go == Verdict::Go::on
                             ? short_of(doors, **store, *run, next_link)
                             : std::nullopt;
    if (without == WhenShort::fail) {
        settled.verdict.go = Verdict::Go::over;
        settled.verdict.ending = ended_for_its_ticket(now);
    } else if (without == WhenShort::hold &&
               (*store)->write(held_json(run->key), to_json(Held{next_link, now}))) {
        settled.verdict.pause = k_held_for;
    }
    if (settled.verdict.go == Verdict::Go::on) {
        auto cluster = doors.cluster();
        settled.next =
            hand_over(**store, cluster ? cluster->get() : nullptr, doors.clock, *run,
                      next_of(options, next_length(run->request, links, now)), settled.verdict);
    }
    forget_half_kept(**store, run->key); // from a helper that was killed late
    return settled;
}

void withdraw_next(Doors& doors, const Options& options)
{
    auto store = doors.store(options.state_dir);
    const auto run = store ? run_of(**store, options) : Result<Run>(store.error());
    if (!run || !run->request.chain) {
        return;
    }
    if (auto cluster = doors.cluster()) {
        (void)withdraw_link(**store, **cluster, *run, LinkNumber{options.link.value + 1});
    }
}

// Texts passed between processes.

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

std::string packed_time(const std::optional<Time>& time)
{
    return time ? fmt::format("{}", time->time_since_epoch().count()) : "";
}

std::optional<Time> time_in(const std::string& text)
{
    return text.empty()
               ? std::nullopt
               : std::optional(Time{std::chrono::microseconds{number_in<std::int64_t>(text)}});
}

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

std::string packed(const LinkPast& past)
{
    return packed_fields({std::to_string(past.link.value), packed_time(past.started_at),
                          packed_time(past.noticed_at), packed_ending(past.ending), past.host,
                          past.checkpoint, past.saved_after_notice ? "1" : "",
                          past.preempted ? "1" : "", past.resumed ? "1" : ""});
}

std::optional<LinkPast> past_in(std::string_view packed)
{
    const std::vector<std::string> fields = fields_in(packed);
    if (fields.size() != 9) {
        return std::nullopt;
    }
    return LinkPast{LinkNumber{number_in<int>(fields[0])},
                    time_in(fields[1]),
                    time_in(fields[2]),
                    ending_in(fields[3]),
                    fields[4],
                    fields[5],
                    !fields[6].empty(),
                    !fields[7].empty(),
                    !fields[8].empty()};
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
                          packed_ending(turn.previous), turn.changed});
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
    if (fields.size() != 8) {
        return std::nullopt;
    }
    Turn turn;
    turn.restart = restart_from_word(fields[1]).value_or(Restart::node);
    turn.checkpoint = fields[2];
    turn.length = seconds(number_in<std::int64_t>(fields[3]));
    turn.lead = seconds(number_in<std::int64_t>(fields[4]));
    turn.why = fields[5];
    turn.previous = ending_in(fields[6]);
    turn.changed = fields[7];
    judged.turn = std::move(turn);
    return judged;
}

std::string packed(const Settled& settled)
{
    if (settled.verdict.go == Verdict::Go::wait) {
        return ""; // as if there were no answer
    }
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
