// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/code_diff.h"

#include "io/descriptor.h"
#include "io/subprocess.h"
#include "snapshots/commit.h"
#include "snapshots/files_below.h"
#include "snapshots/take.h"
#include "snapshots/view.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using snapshots::Entry;
using snapshots::Manifest;

/// The output of diff -u; the contents reach it as descriptors.
Result<std::string> unified(const std::string& path, const std::string& before,
                            const std::string& after)
{
    TRY_ASSIGN(const Descriptor left, file_in_memory(before));
    TRY_ASSIGN(const Descriptor right, file_in_memory(after));
    Subprocess plan{.argv = {"diff", "-u", "--label", "a/" + path, "--label", "b/" + path,
                             "/dev/fd/3", "/dev/fd/4"}};
    plan.descriptors = {Subprocess::k_null, Subprocess::k_null, Subprocess::k_null, left.get(),
                        right.get()};
    TRY_ASSIGN(Finished finished, run(std::move(plan), {.streams = Capture::Streams::together}));
    constexpr int k_different = 1;
    if (finished.error != 0 || finished.status > k_different) {
        return fail(Error::Kind::io, "diff can't be executed: " + finished.out);
    }
    return std::move(finished.out);
}

/// The content of a file of a snapshot; empty without one.
Result<std::string> content(Store& store, const Entry* entry)
{
    return entry != nullptr ? snapshots::content_of(store, *entry) : Result<std::string>("");
}

Result<std::vector<FileChange>> diff_to_now(Store& store, const Manifest& before)
{
    const snapshots::Changes changes = snapshots::changes_since(before);
    snapshots::FilesBelow files(before.root);
    std::vector<FileChange> list;
    for (const Entry& entry : before.entries) {
        const auto is_in = [&](const std::vector<std::string>& paths) {
            return std::find(paths.begin(), paths.end(), entry.path) != paths.end();
        };
        const bool removed = is_in(changes.missing);
        if (!removed && !is_in(changes.changed)) {
            continue;
        }
        TRY_ASSIGN(const std::string old, snapshots::content_of(store, entry));
        const auto now = files.read(entry.path);
        TRY_ASSIGN(std::string diff, unified(entry.path, old, now ? now->content : ""));
        list.push_back({entry.path, removed ? FileChange::Kind::removed : FileChange::Kind::changed,
                        std::move(diff)});
    }
    return list;
}

} // namespace

Result<std::vector<FileChange>> code_diff(Store& store, const Manifest& before,
                                          const Manifest* after)
{
    if (after == nullptr) {
        return diff_to_now(store, before);
    }
    std::vector<FileChange> list;
    const auto add = [&](const std::string& path, const Entry* left,
                         const Entry* right) -> Result<void> {
        TRY_ASSIGN(const std::string old, content(store, left));
        TRY_ASSIGN(const std::string now, content(store, right));
        TRY_ASSIGN(std::string diff, unified(path, old, now));
        list.push_back({path,
                        left == nullptr    ? FileChange::Kind::added
                        : right == nullptr ? FileChange::Kind::removed
                                           : FileChange::Kind::changed,
                        std::move(diff)});
        return {};
    };
    for (const Entry& entry : before.entries) {
        const Entry* other = snapshots::find(*after, entry.path);
        if (other == nullptr || other->hash != entry.hash ||
            other->executable != entry.executable) {
            TRY(add(entry.path, &entry, other));
        }
    }
    for (const Entry& entry : after->entries) {
        if (snapshots::find(before, entry.path) == nullptr) {
            TRY(add(entry.path, nullptr, &entry));
        }
    }
    return list;
}

Result<std::vector<FileChange>> code_diff_to_commit(Store& store, const Manifest& code)
{
    TRY_ASSIGN(const auto changes, snapshots::changes_from_commit(store, code));
    std::vector<FileChange> list;
    for (const snapshots::CommitChange& change : changes) {
        const auto old =
            change.before ? snapshots::committed_content(code, *change.before) : std::nullopt;
        TRY_ASSIGN(const std::string now, content(store, change.after));
        TRY_ASSIGN(std::string diff, unified(change.path, old.value_or(""), now));
        list.push_back({change.path,
                        !change.before            ? FileChange::Kind::added
                        : change.after == nullptr ? FileChange::Kind::removed
                                                  : FileChange::Kind::changed,
                        std::move(diff)});
    }
    return list;
}

} // namespace gpuq::cli
