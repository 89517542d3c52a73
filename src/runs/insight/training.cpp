// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/training.h"

#include "telemetry/event_file.h"
#include "telemetry/pace.h"
#include "telemetry/training_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace gpuq {
namespace {

using std::chrono::seconds;
using telemetry::Curves;
using telemetry::Progress;
using telemetry::Series;
using Kind = TrainingFile::Kind;
using Tagged = std::pair<const std::string, Series>;

constexpr std::uint64_t k_most_bytes = 32ULL << 20; ///< of all files
constexpr std::uint64_t k_most_of_one = 8ULL << 20;
constexpr std::uint64_t k_head = 1ULL << 20; ///< of a longer file
constexpr std::uint64_t k_tail = 4ULL << 20;
constexpr std::uint64_t k_kinds = 3;

std::string_view name_in(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

std::string_view directory_of(std::string_view path)
{
    const auto slash = path.rfind('/');
    return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

std::optional<Kind> kind_of(std::string_view name)
{
    if (name.find("tfevents") != name.npos) {
        return Kind::events;
    }
    if (name == "metrics.csv") {
        return Kind::metrics_csv;
    }
    return name == "trainer_state.json" ? std::optional(Kind::trainer_state) : std::nullopt;
}

/// When an event file was begun, according to its name: `events.out.tfevents.1700000000.node.1`.
Time begun(std::string_view path, Time modified)
{
    constexpr std::string_view k_before = "tfevents.";
    const std::string_view name = name_in(path);
    const auto at = name.find(k_before);
    std::uint64_t number = 0;
    if (at != name.npos) {
        const auto digits = name.substr(at + k_before.size());
        std::from_chars(digits.begin(), digits.end(), number);
    }
    const bool is_time = number > 1'000'000'000 && number < 100'000'000'000;
    return is_time ? Time(seconds(number)) : modified;
}

Time begun(const TrainingFile& file)
{
    return begun(file.path, file.modified);
}

/// True if a file is still being written but was begun before the run: each start of a program
/// creates a new file.
bool is_of_an_earlier_run(const Files::File& file, Time since)
{
    constexpr std::chrono::minutes k_clocks{1};
    return begun(file.path, file.modified) + k_clocks < since;
}

/// Returns the number of damaged bytes.
std::uint64_t read_events(const TrainingFile& file, Curves& curves)
{
    telemetry::EventFile events;
    events.feed(file.head, curves);
    if (!file.tail.empty()) {
        events.skip(file.bytes - file.head.size() - file.tail.size());
        events.feed(file.tail, curves);
    }
    return events.damaged_bytes();
}

/// For a long file, its header and its last rows.
std::string rows_of(const TrainingFile& file)
{
    if (file.tail.empty()) {
        return file.head;
    }
    const std::string header = file.head.substr(0, file.head.find('\n') + 1);
    return header + file.tail.substr(file.tail.find('\n') + 1);
}

/// Groups event files: directories written one after the other, such as those of a chain's links,
/// form one group; directories written at the same time, such as `train` and `validation`, form a
/// group each.
struct Group {
    Time end;
    std::vector<const TrainingFile*> files;
    Curves curves;
};

std::vector<Group> groups_of(const std::vector<TrainingFile>& files)
{
    std::map<std::string_view, std::vector<const TrainingFile*>> by_directory;
    for (const TrainingFile& file : files) {
        if (file.kind == Kind::events) {
            by_directory[directory_of(file.path)].push_back(&file);
        }
    }
    const auto by_begin = [](const TrainingFile* left, const TrainingFile* right) {
        return std::tuple(begun(*left), left->path) < std::tuple(begun(*right), right->path);
    };
    std::vector<std::vector<const TrainingFile*>> directories;
    for (auto& [path, in_it] : by_directory) {
        std::ranges::sort(in_it, by_begin);
        directories.push_back(std::move(in_it));
    }
    std::ranges::stable_sort(directories, by_begin,
                             [](const auto& in_it) { return in_it.front(); });
    std::vector<Group> groups;
    for (const auto& directory : directories) {
        auto before = groups.end();
        for (auto group = groups.begin(); group != groups.end(); ++group) {
            const bool continues = group->end <= begun(*directory.front());
            if (continues && (before == groups.end() || group->end > before->end)) {
                before = group;
            }
        }
        Group& group = before == groups.end() ? groups.emplace_back() : *before;
        for (const TrainingFile* file : directory) {
            group.end = std::max(group.end, file->modified);
            group.files.push_back(file);
        }
    }
    return groups;
}

const Tagged* most_points(const Curves& curves)
{
    const auto& all = curves.by_tag();
    const auto most =
        std::ranges::max_element(all, {}, [](const Tagged& one) { return one.second.points(); });
    return most == all.end() ? nullptr : &*most;
}

/// The curve that shows the progress of a training.
const Tagged* main_curve(const Curves& curves)
{
    const Tagged* const loss = telemetry::main_loss(curves);
    return loss != nullptr ? loss : most_points(curves);
}

void add_all(const Curves& from, const std::string& prefix, Curves& to)
{
    for (const auto& [tag, series] : from.by_tag()) {
        to.add(prefix + tag, series);
    }
}

bool take_events(const std::vector<TrainingFile>& files, Training& training)
{
    auto groups = groups_of(files);
    for (Group& group : groups) {
        for (const TrainingFile* file : group.files) {
            if (const std::uint64_t bytes = read_events(*file, group.curves); bytes > 0) {
                training.damage.push_back({file->path, bytes});
            }
        }
    }
    std::erase_if(groups, [](const Group& group) { return group.curves.by_tag().empty(); });
    const auto main = std::ranges::max_element(groups, {}, [](const Group& group) {
        const Tagged* const most = main_curve(group.curves);
        return std::tuple(telemetry::main_loss(group.curves) != nullptr, most->second.points());
    });
    if (main == groups.end()) {
        return false;
    }
    const auto newest =
        std::ranges::max_element(main->files, {}, [](const auto* file) { return file->modified; });
    training.source = (*newest)->path;
    training.written_at = (*newest)->modified;
    add_all(main->curves, "", training.curves);
    for (const Group& group : groups) {
        if (&group != &*main) {
            add_all(group.curves, fmt::format("{}/", directory_of(group.files.back()->path)),
                    training.curves);
        }
    }
    return true;
}

/// Steps per second between two steps that were reached at two times.
std::optional<double> pace(std::int64_t from, std::int64_t to, Time::duration between)
{
    const double time = std::chrono::duration<double>(between).count();
    return to > from && time > 0 ? std::optional(static_cast<double>(to - from) / time)
                                 : std::nullopt;
}

bool take_csv(const std::vector<TrainingFile>& files, std::optional<Time> link_begun,
              Training& training)
{
    std::vector<const TrainingFile*> all;
    for (const TrainingFile& file : files) {
        if (file.kind == Kind::metrics_csv) {
            all.push_back(&file);
        }
    }
    std::ranges::sort(all, {}, [](const TrainingFile* file) { return file->modified; });
    for (const TrainingFile* file : all) {
        Curves here;
        telemetry::read_metrics_csv(rows_of(*file), here);
        telemetry::read_metrics_csv(rows_of(*file), training.curves);
        const Tagged* const main = main_curve(here);
        if (main != nullptr) {
            training.source = file->path;
            training.written_at = file->modified;
            training.rate = link_begun ? pace(main->second.first()->step, main->second.last()->step,
                                              file->modified - *link_begun)
                                       : std::nullopt;
        }
    }
    return !training.source.empty();
}

struct States {
    telemetry::TrainerState newest;
    const TrainingFile* file = nullptr;
    std::optional<double> rate;
};

/// Each checkpoint has such a file; the one with the most steps contains the history of all others.
std::optional<States> states_of(const std::vector<TrainingFile>& files)
{
    std::optional<States> all;
    std::vector<std::pair<std::uint64_t, Time>> reached;
    for (const TrainingFile& file : files) {
        auto state = file.kind == Kind::trainer_state && file.tail.empty()
                         ? telemetry::read_trainer_state(file.head)
                         : std::nullopt;
        if (!state || !state->global_step) {
            continue;
        }
        reached.emplace_back(*state->global_step, file.modified);
        if (!all || *state->global_step > *all->newest.global_step) {
            all = States{*std::move(state), &file, {}};
        }
    }
    std::ranges::sort(reached);
    if (reached.size() >= 2) {
        const auto& last = reached.back();
        const auto& before = reached[reached.size() - 2];
        all->rate = pace(static_cast<std::int64_t>(before.first),
                         static_cast<std::int64_t>(last.first), last.second - before.second);
    }
    return all;
}

Progress steps(std::int64_t step, std::optional<std::uint64_t> total)
{
    const auto done = static_cast<std::uint64_t>(std::max<std::int64_t>(step, 0));
    return {"step", done, total && *total >= done ? total : std::nullopt};
}

void report_progress(const std::optional<States>& states, const LinkProgress& output,
                     Training& training)
{
    const Tagged* const main = main_curve(training.curves);
    const bool has_file = !training.source.empty() && main != nullptr;
    const std::int64_t step = has_file ? main->second.last()->step : 0;
    if (states && states->newest.max_steps) {
        const auto reached = static_cast<std::int64_t>(*states->newest.global_step);
        training.progress = steps(std::max(reached, step), states->newest.max_steps);
    } else if (has_file && !(output.last && output.last->total)) {
        training.progress = steps(step, std::nullopt);
    } else {
        training.progress = output.last;
        training.progress_is_of_output = output.last.has_value();
    }
}

void report_pace(const LinkProgress& output, Training& training)
{
    const Tagged* const main = main_curve(training.curves);
    if (!training.source.empty() && main != nullptr) {
        const auto newest = telemetry::steps_per_second(main->second);
        training.rate = newest ? newest : training.rate;
        training.usual_interval = telemetry::usual_interval(main->second);
    } else if (output.bar && output.bar->rate) {
        training.rate = output.bar->rate;
        training.usual_interval = std::chrono::milliseconds(
            static_cast<std::int64_t>(std::min(1000 / *output.bar->rate, 1e12)));
    }
}

std::optional<Time> at_pace(const Training& training, Time now)
{
    constexpr double k_longest = 10.0 * 365 * 86400; // longer times are not a meaningful forecast
    const auto& progress = training.progress;
    if (!progress || !progress->total || progress->unit != "step" || !training.rate ||
        !training.written_at) {
        return std::nullopt;
    }
    const double left = static_cast<double>(*progress->total - progress->done) / *training.rate;
    return left < k_longest
               ? std::optional(std::max(now, *training.written_at + seconds(std::llround(left))))
               : std::nullopt;
}

/// Removes `NUMBER ` from the text.
std::optional<std::uint64_t> take_number(std::string_view& text)
{
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
    if (error != std::errc() || end == text.end()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()) + 1);
    return number;
}

std::optional<std::string> take_bytes(std::string_view& text)
{
    const auto size = take_number(text);
    if (!size || *size > text.size()) {
        return std::nullopt;
    }
    std::string bytes(text.substr(0, *size));
    text.remove_prefix(*size);
    return bytes;
}

} // namespace

std::vector<TrainingFile> read_training_files(Files& files, const std::string& directory,
                                              Time since)
{
    const auto found = files.changed_since(
        directory, since, [](std::string_view name) { return kind_of(name).has_value(); });
    std::vector<TrainingFile> read;
    std::uint64_t left = k_most_bytes;
    for (const Files::File& file : found ? *found : std::vector<Files::File>{}) {
        const Kind kind = *kind_of(name_in(file.path));
        if (kind == Kind::events && is_of_an_earlier_run(file, since)) {
            continue;
        }
        const bool is_long = file.bytes > k_most_of_one;
        const std::uint64_t head = is_long ? k_head : file.bytes;
        const std::uint64_t tail = is_long ? k_tail : 0;
        if (head + tail > left) {
            continue;
        }
        left -= head + tail;
        auto first = files.read_at(directory, file.path, 0, head);
        auto last = tail > 0 ? files.read_at(directory, file.path, file.bytes - tail, tail)
                             : Result<std::string>(std::string());
        // A file that has become shorter in the meantime is read at the next poll.
        if (first && last && last->size() == tail) {
            read.push_back({kind, file.path, tail > 0 ? file.bytes : first->size(), file.modified,
                            *std::move(first), *std::move(last)});
        }
    }
    return read;
}

std::vector<Files::File> list_event_files(Files& files, const std::string& directory, Time since)
{
    auto found = files.changed_since(
        directory, since, [](std::string_view name) { return kind_of(name) == Kind::events; });
    if (!found) {
        return {};
    }
    std::erase_if(*found,
                  [&](const Files::File& file) { return is_of_an_earlier_run(file, since); });
    return *std::move(found);
}

std::string to_text(const std::vector<TrainingFile>& files)
{
    std::string text;
    for (const TrainingFile& file : files) {
        text += fmt::format("{} {} {} ", static_cast<int>(file.kind), file.bytes,
                            file.modified.time_since_epoch().count());
        for (const std::string* bytes : {&file.path, &file.head, &file.tail}) {
            text += fmt::format("{} ", bytes->size());
            text += *bytes;
        }
    }
    return text;
}

std::vector<TrainingFile> training_files_in(std::string_view text)
{
    std::vector<TrainingFile> files;
    while (true) {
        const auto kind = take_number(text);
        const auto bytes = take_number(text);
        const auto modified = take_number(text);
        auto path = take_bytes(text);
        auto head = take_bytes(text);
        auto tail = take_bytes(text);
        if (!kind || *kind >= k_kinds || !bytes || !modified || !path || !head || !tail ||
            head->size() + tail->size() > *bytes) {
            return files;
        }
        files.push_back({static_cast<Kind>(*kind), *std::move(path), *bytes,
                         Time(std::chrono::microseconds(*modified)), *std::move(head),
                         *std::move(tail)});
    }
}

Training training_of(const std::vector<TrainingFile>& files, const LinkProgress& output,
                     std::optional<Time> link_begun)
{
    Training training;
    const auto states = states_of(files);
    if (!take_events(files, training) && !take_csv(files, link_begun, training)) {
        if (states && !states->newest.curves.by_tag().empty()) {
            training.source = states->file->path;
            training.written_at = states->file->modified;
            training.curves = states->newest.curves;
            training.rate = states->rate;
        } else {
            training.curves = output.curves;
            training.written_at = output.written_at;
        }
    }
    report_progress(states, output, training);
    report_pace(output, training);
    return training;
}

std::optional<Finish> finish_of(const Training& training, const LinkProgress& output,
                                const RunStatus& status, Time now)
{
    if (status.state != RunState::running) {
        return std::nullopt;
    }
    Finish finish;
    if (const auto at = at_pace(training, now)) {
        finish.at = *at;
    } else if (output.began && output.last && status.started_at) {
        // The output reports progress when it is made: the silence since then does not lower the
        // pace.
        const Time reported_at = std::min(now, output.written_at.value_or(now));
        const auto left =
            telemetry::time_left(*output.began, *output.last,
                                 std::chrono::floor<seconds>(reported_at - *status.started_at));
        if (!left) {
            return std::nullopt;
        }
        finish.at = std::max(now, reported_at + *left);
        finish.is_pace_of_link = true;
    } else {
        return std::nullopt;
    }
    const auto beyond = [&](Time end) {
        return std::max(seconds(0), std::chrono::floor<seconds>(finish.at - end));
    };
    finish.beyond_limit = status.ends_at ? beyond(*status.ends_at) : seconds(0);
    finish.beyond_run = finish.beyond_limit;
    const auto* const chain =
        status.run && status.run->request.chain ? &*status.run->request.chain : nullptr;
    if (chain != nullptr && chain->link.count() > 0) {
        const seconds left = seconds(status.run->request.walltime) - time_used(status.links, now);
        finish.beyond_run = beyond(now + left);
        const seconds in_links = finish.beyond_limit - finish.beyond_run;
        finish.more_links =
            static_cast<int>((in_links.count() + chain->link.count() - 1) / chain->link.count());
    }
    return finish;
}

std::vector<TrainingAlarm> alarms_of(const Training& training, const RunStatus& status, Time now)
{
    std::vector<TrainingAlarm> alarms;
    for (const auto& [tag, series] : training.curves.by_tag()) {
        const auto& bad = series.not_finite_since();
        if (bad && telemetry::is_loss(tag)) {
            alarms.push_back(
                {TrainingAlarm::Kind::not_finite, bad->at, {}, tag, bad->step, bad->value});
        }
    }
    const Tagged* const main = main_curve(training.curves);
    auto since = main != nullptr ? main->second.last()->at : std::nullopt;
    since = since ? since : training.written_at;
    if (status.state == RunState::running && !status.suspended && training.usual_interval &&
        since &&
        telemetry::is_stall(std::chrono::floor<std::chrono::milliseconds>(now - *since),
                            *training.usual_interval)) {
        alarms.push_back({TrainingAlarm::Kind::stalled, since, *training.usual_interval, {}, 0, 0});
    }
    return alarms;
}

} // namespace gpuq
