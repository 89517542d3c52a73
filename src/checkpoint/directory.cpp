// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/directory.h"

#include "checkpoint/json.h"
#include "checkpoint/names.h"

#include "core/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;
using namespace std::string_view_literals;

/// Limit for reading other programs' JSON.
constexpr std::uint64_t k_longest_json = 64 << 20;
constexpr std::uint64_t k_longest_tracker = 256;

constexpr auto k_trainer_state = "trainer_state.json"sv;
constexpr auto k_megatron_tracker = "latest_checkpointed_iteration.txt"sv;
constexpr auto k_deepspeed_tracker = "latest"sv;

std::string_view name_in(std::string_view path)
{
    return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

std::string_view directory_of(std::string_view path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? ""sv : path.substr(0, slash);
}

std::string beside(std::string_view path, std::string_view name)
{
    const std::string_view directory = directory_of(path);
    return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

void scan_trainer_state(Bytes& bytes, ScannedFile& scanned)
{
    const auto state = parse_trainer_state(bytes.first(k_longest_json));
    scanned.judgement = state ? Judgement{Says::whole, ""} : incomplete("it is not valid JSON");
    scanned.step = state ? state->global_step : std::nullopt;
}

void scan_index(Bytes& bytes, ScannedFile& scanned)
{
    auto files = files_of_index(bytes.first(k_longest_json));
    scanned.judgement = files ? Judgement{Says::whole, ""} : incomplete("it is not valid JSON");
    if (files) {
        scanned.names = *std::move(files);
    }
}

/// A name up to its first digit.
std::string stem_of(std::string_view name)
{
    return std::string(name.substr(0, name.find_first_of("0123456789")));
}

std::string first_line(Bytes& bytes)
{
    const std::string text = bytes.size() <= k_longest_tracker ? bytes.first(bytes.size()) : "";
    return text.substr(0, text.find_last_not_of(" \r\n") + 1);
}

/// Megatron: the number of the last iteration that all ranks have written.
void scan_megatron(Bytes& bytes, ScannedFile& scanned)
{
    const std::string line = first_line(bytes);
    scanned.step = whole_number(line);
    if (!scanned.step && line != "release") {
        scanned.judgement = incomplete("it contains no iteration number");
        return;
    }
    scanned.judgement = {Says::whole, ""};
    scanned.names = {scanned.step ? fmt::format("iter_{:07}", *scanned.step) : line};
}

/// DeepSpeed: the name of the last directory that all ranks have written. Other programs may use a
/// file of this name for another purpose.
void scan_deepspeed(Bytes& bytes, ScannedFile& scanned)
{
    const std::string line = first_line(bytes);
    if (!line.empty() && line.find_first_of("/\n") == std::string::npos) {
        scanned.judgement = {Says::whole, ""};
        scanned.names = {line};
        scanned.step = step_of(line);
    }
}

/// A directory's parts by their paths.
class Contents {
public:
    Contents(const std::vector<ScannedFile>& scanned, bool is_all)
        : m_scanned(scanned)
        , m_is_all(is_all)
    {
        for (const ScannedFile& one : scanned) {
            m_by_path.emplace(one.part.path, &one);
        }
        choose_directories();
    }

    const std::vector<ScannedFile>& scanned() const { return m_scanned; }
    bool is_all() const { return m_is_all; }
    const ScannedFile* at(std::string_view path) const
    {
        const auto found = m_by_path.find(path);
        return found == m_by_path.end() ? nullptr : found->second;
    }
    bool has_directory(std::string_view path) const
    {
        const ScannedFile* const one = at(path);
        return one != nullptr && one->part.kind == Kind::directory;
    }
    /// True if a part belongs to the checkpoint: next to the directory named by a tracker there may
    /// be older ones, and the next one.
    bool counts(std::string_view path) const
    {
        const std::size_t slash = path.find('/');
        return !m_chosen || slash == std::string_view::npos || path.substr(0, slash) == *m_chosen;
    }
    bool has_chosen() const { return m_chosen.has_value(); }

private:
    void choose_directories()
    {
        for (const std::string_view tracker : {k_megatron_tracker, k_deepspeed_tracker}) {
            const ScannedFile* const one = at(tracker);
            if (one != nullptr && one->names.size() == 1 && has_directory(one->names[0])) {
                m_chosen = one->names[0];
            }
        }
    }

    const std::vector<ScannedFile>& m_scanned;
    bool m_is_all;
    std::map<std::string_view, const ScannedFile*> m_by_path;
    std::optional<std::string> m_chosen;
};

/// True if a file exists that is written last, after all other files.
bool has_marker(const Contents& contents)
{
    return contents.has_chosen() ||
           std::ranges::any_of(std::array{k_trainer_state, ".metadata"sv, "_CHECKPOINT_METADATA"sv,
                                          "commit_success.txt"sv},
                               [&](std::string_view name) { return contents.at(name) != nullptr; });
}

std::optional<std::string> is_being_written(const Contents& contents)
{
    for (const ScannedFile& one : contents.scanned()) {
        const std::string_view name = name_in(one.part.path);
        if (contents.counts(one.part.path) &&
            (name == "checkpoint-is-incomplete.txt" || is_unfinished(name))) {
            return fmt::format("{} is still present", one.part.path);
        }
    }
    return std::nullopt;
}

std::optional<std::string> has_incomplete_file(const Contents& contents)
{
    for (const ScannedFile& one : contents.scanned()) {
        const std::string_view name = name_in(one.part.path);
        const bool may_be_empty = one.part.bytes == 0 && !is_data_name(name); // a marker
        if (one.judgement.says == Says::incomplete && !may_be_empty &&
            contents.counts(one.part.path)) {
            return fmt::format("{}: {}", one.part.path, one.judgement.why);
        }
    }
    return std::nullopt;
}

std::optional<std::string> lacks_named_file(const Contents& contents)
{
    for (const ScannedFile& one : contents.scanned()) {
        if (!contents.counts(one.part.path)) {
            continue;
        }
        const bool is_any_tracker = name_in(one.part.path) == k_deepspeed_tracker;
        for (const std::string& name : one.names) {
            const bool is_surely_named = !is_any_tracker || name.starts_with("global_step");
            if (is_surely_named && contents.at(beside(one.part.path, name)) == nullptr) {
                return fmt::format("{} names {}, which does not exist", one.part.path, name);
            }
        }
    }
    return std::nullopt;
}

/// torch DCP: the coordinator writes .metadata after all ranks have written their files.
std::optional<std::string> lacks_metadata(const Contents& contents)
{
    std::set<std::string_view> described;
    for (const ScannedFile& one : contents.scanned()) {
        if (one.part.path.ends_with(".metadata")) {
            described.insert(directory_of(one.part.path));
        }
    }
    for (const ScannedFile& one : contents.scanned()) {
        if (one.part.path.ends_with(".distcp") && contents.counts(one.part.path) &&
            !described.contains(directory_of(one.part.path))) {
            return fmt::format("{} exists, but no {}", one.part.path,
                               beside(one.part.path, ".metadata"));
        }
    }
    return std::nullopt;
}

std::optional<std::string> has_nothing(const Contents& contents)
{
    const bool is_empty = std::ranges::all_of(contents.scanned(), [](const ScannedFile& one) {
        return one.part.kind != Kind::link && one.part.bytes == 0;
    });
    return is_empty ? std::optional<std::string>("it is empty") : std::nullopt;
}

std::optional<std::string> problem_of(const Contents& contents)
{
    for (const auto check : {has_nothing, is_being_written, has_incomplete_file}) {
        if (auto why = check(contents)) {
            return why;
        }
    }
    if (!contents.is_all()) {
        return std::nullopt; // missing files may just not have been read
    }
    auto why = lacks_named_file(contents);
    return why ? why : lacks_metadata(contents);
}

std::optional<std::uint64_t> step_in(const Contents& contents)
{
    for (const std::string_view name : {k_trainer_state, k_megatron_tracker, k_deepspeed_tracker}) {
        const ScannedFile* const one = contents.at(name);
        if (one != nullptr && one->step) {
            return one->step;
        }
    }
    return std::nullopt;
}

} // namespace

ScannedFile scan(const Part& part, std::string_view name, Bytes& bytes)
{
    ScannedFile scanned{part};
    if (bytes.size() == 0) {
        scanned.judgement = check_completeness(bytes, name);
    } else if (name == k_trainer_state) {
        scan_trainer_state(bytes, scanned);
    } else if (name.ends_with(".index.json")) {
        scan_index(bytes, scanned);
    } else if (name == k_megatron_tracker) {
        scan_megatron(bytes, scanned);
    } else if (name == k_deepspeed_tracker) {
        scan_deepspeed(bytes, scanned);
    } else {
        scanned.judgement = check_completeness(bytes, name);
    }
    scanned.error = bytes.error();
    return scanned;
}

DirectoryJudgement check_directory(const std::vector<ScannedFile>& scanned, bool is_all)
{
    const auto unreadable =
        std::ranges::find_if(scanned, [](const ScannedFile& one) { return one.error != 0; });
    if (unreadable != scanned.end()) {
        return {{},
                std::nullopt,
                fmt::format("{} can't be read: {}", unreadable->part.path,
                            std::strerror(unreadable->error))};
    }
    const Contents contents(scanned, is_all);
    if (auto why = problem_of(contents)) {
        return {incomplete(*std::move(why)), step_in(contents), ""};
    }
    const bool is_proved = has_marker(contents) && is_all;
    return {{is_proved ? Says::whole : Says::settles, ""}, step_in(contents), ""};
}

bool holds_several(const std::vector<Part>& parts)
{
    std::set<std::string> stems;
    return std::ranges::any_of(parts, [&](const Part& part) {
        const bool is_counted = part.kind == Kind::directory &&
                                part.path.find('/') == std::string::npos &&
                                part.path.find("rank") == std::string::npos && step_of(part.path);
        return part.path == k_megatron_tracker ||
               (is_counted && !stems.insert(stem_of(part.path)).second);
    });
}

} // namespace gpuq::checkpoint
