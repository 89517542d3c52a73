// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/find.h"

#include "checkpoint/candidates.h"
#include "checkpoint/directory.h"
#include "checkpoint/formats.h"
#include "checkpoint/names.h"
#include "io/trusted_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include <fcntl.h>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;

/// The number of files of a directory that are opened; for the others, only names and sizes are
/// checked.
constexpr int k_most_opened = 1024;

std::string_view name_in(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

bool is_unchanged(const Found& found, const Found* before)
{
    return before != nullptr && before->inode == found.inode && before->bytes == found.bytes &&
           before->modified == found.modified;
}

const Found* same_path(const std::vector<Found>& before, const std::string& path)
{
    const auto found =
        std::ranges::find_if(before, [&](const Found& one) { return one.path == path; });
    return found == before.end() ? nullptr : &*found;
}

void decide(Found& found, const Judgement& judgement, const Found* before)
{
    if (judgement.says == Says::incomplete) {
        found.verdict = Verdict::incomplete;
        found.why = judgement.why;
    } else if (judgement.says == Says::whole || is_unchanged(found, before)) {
        found.verdict = Verdict::whole;
    } else {
        found.why =
            "its format does not show that it is complete, and it was not seen unchanged twice yet";
    }
}

void mark_unreadable(Found& found, int error)
{
    found.why = fmt::format("it can't be read: {}", std::strerror(error));
}

/// Disables read-ahead: for headers and trailers it would cost more than the reads themselves on
/// NFS.
void expect_few_reads(const Descriptor& file)
{
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
}

void check_file(Found& found, const OpenFile& opened, const Found* before)
{
    expect_few_reads(opened.file);
    FileBytes bytes(opened.file, found.bytes);
    const Judgement judgement = check_completeness(bytes, name_in(found.path));
    if (bytes.error() != 0) {
        mark_unreadable(found, bytes.error());
    } else {
        decide(found, judgement, before);
    }
}

std::optional<Found> examine_file(Found found, const Found* before)
{
    const OpenFile opened = open_file(AT_FDCWD, found.path);
    const bool is_replaced =
        opened.error == 0 && is_of_another_user(opened.status, opened.file.get());
    if (opened.error == ENOENT || opened.error == ELOOP || is_replaced) {
        return std::nullopt; // deleted, or replaced by something other than a file of the user
    }
    if (opened.error != 0) {
        mark_unreadable(found, opened.error);
        return found;
    }
    found.bytes = static_cast<std::uint64_t>(opened.status.st_size);
    found.modified = modified_of(opened.status);
    found.inode = opened.status.st_ino;
    if (is_unchanged(found, before) && before->verdict == Verdict::whole) {
        return *before;
    }
    check_file(found, opened, before);
    return found;
}

ScannedFile scan_file(int parent, const std::string& name, Part& part)
{
    const OpenFile opened = open_file(parent, name);
    if (opened.error != 0) {
        // It was replaced a moment ago by something other than a file: the next find_checkpoints()
        // sees that.
        return {part, {}, {}, std::nullopt, opened.error == ELOOP ? ESTALE : opened.error};
    }
    part.bytes = static_cast<std::uint64_t>(opened.status.st_size);
    part.modified = modified_of(opened.status);
    expect_few_reads(opened.file);
    FileBytes bytes(opened.file, part.bytes);
    return scan(part, name, bytes);
}

std::vector<ScannedFile> scan_all(int directory, Tree& tree)
{
    std::vector<ScannedFile> all;
    int opened = 0;
    tree = walk(directory, [&](int parent, const std::string& name, Part& part) {
        const bool is_read = part.kind == Kind::file && ++opened <= k_most_opened;
        all.push_back(is_read ? scan_file(parent, name, part) : ScannedFile{part});
    });
    return all;
}

void check_opened_directory(Found& found, int directory, Time own, const Found* before)
{
    Tree tree;
    const std::vector<ScannedFile> scanned = scan_all(directory, tree);
    measure(found, tree, own);
    if (tree.error != 0) {
        mark_unreadable(found, tree.error);
        return;
    }
    if (!tree.is_own) {
        found.why = "another user owns a file in it";
        return;
    }
    const DirectoryJudgement judged = check_directory(scanned, tree.is_all);
    found.step = judged.step ? judged.step : found.step;
    if (judged.unreadable.empty()) {
        decide(found, judged.judgement, before);
    } else {
        found.why = judged.unreadable;
    }
}

std::optional<Found> examine_directory(Found found, const Found* before)
{
    const Descriptor directory = open_directory(AT_FDCWD, found.path);
    struct stat status = {};
    if (!directory || ::fstat(directory.get(), &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) {
            return std::nullopt;
        }
        mark_unreadable(found, errno);
        return found;
    }
    found.inode = status.st_ino;
    if (before != nullptr && before->verdict == Verdict::whole) {
        const Tree tree = walk(directory.get(), leave_as_it_is);
        measure(found, tree, modified_of(status));
        if (tree.is_own && is_unchanged(found, before)) {
            return *before;
        }
    }
    check_opened_directory(found, directory.get(), modified_of(status), before);
    return found;
}

std::optional<Found> examine(const Candidate& candidate, const std::vector<Found>& before)
{
    Found found;
    found.path = candidate.path;
    found.modified = candidate.modified;
    found.step = step_of(candidate.relative);
    const Found* const previous = same_path(before, candidate.path);
    return candidate.kind == Kind::directory ? examine_directory(std::move(found), previous)
                                             : examine_file(std::move(found), previous);
}

} // namespace

Result<std::vector<Found>> find_checkpoints(const Place& place, const std::vector<Found>& before)
{
    TRY_ASSIGN(const std::vector<Candidate> candidates, candidates_at(place, k_most_candidates));
    std::vector<Found> all;
    for (const Candidate& candidate : candidates) {
        if (auto found = examine(candidate, before)) {
            all.push_back(*std::move(found));
        }
    }
    std::ranges::sort(all, [](const Found& left, const Found& right) {
        return std::tie(right.modified, right.step, left.path) <
               std::tie(left.modified, left.step, right.path);
    });
    return all;
}

const Found* newest_whole(const std::vector<Found>& found)
{
    const auto whole =
        std::ranges::find_if(found, [](const Found& one) { return one.verdict == Verdict::whole; });
    return whole == found.end() ? nullptr : &*whole;
}

} // namespace gpuq::checkpoint
