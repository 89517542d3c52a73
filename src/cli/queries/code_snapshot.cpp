// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/code_snapshot.h"

#include "core/key.h"
#include "core/layout.h"
#include "snapshots/commit.h"
#include "snapshots/take.h"
#include "snapshots/view.h"

namespace gpuq::cli {

Result<CodeSnapshot> take_snapshot(Store& store, const SnapshotPlan& plan)
{
    const auto taken = snapshots::take(store, plan.directory, plan.program, plan.required);
    if (taken) {
        return CodeSnapshot{to_json(snapshots::Reference{taken->id, plan.required}), {}};
    }
    const Error& error = taken.error();
    if (error.kind == Error::Kind::missing) { // not a directory of code, and not requested
        return CodeSnapshot{};
    }
    if (plan.required) {
        return fail(error.kind == Error::Kind::busy ? Error::Kind::usage : error.kind,
                    "--snapshot: " + error.text);
    }
    return CodeSnapshot{{}, "no snapshot of its code: " + error.text};
}

Result<std::optional<snapshots::Manifest>> find_snapshot(Store& store, const std::string& reference)
{
    const auto text = store.read(reference);
    if (!text && text.error().kind == Error::Kind::missing) {
        return std::optional<snapshots::Manifest>();
    }
    if (!text) {
        return text.error();
    }
    TRY_ASSIGN(const snapshots::Reference found, snapshots::reference_from_json(*text));
    TRY_ASSIGN(snapshots::Manifest manifest, snapshots::read(store, found.id));
    return std::optional(std::move(manifest));
}

std::optional<std::string> snapshot_id(Store& store, const std::string& reference)
{
    const auto text = store.read(reference);
    const auto found =
        text ? snapshots::reference_from_json(*text) : Result<snapshots::Reference>(text.error());
    return found ? std::optional(found->id) : std::nullopt;
}

std::optional<CodeFacts> code_facts(Store& store, const std::string& reference)
{
    const auto id = snapshot_id(store, reference);
    const auto manifest = find_snapshot(store, reference);
    if (!id || !manifest || !*manifest) {
        return std::nullopt;
    }
    const snapshots::Manifest& code = **manifest;
    auto changes = snapshots::changes_since(code);
    changes.changed.insert(changes.changed.end(), changes.missing.begin(), changes.missing.end());
    std::optional<std::vector<std::string>> dirty;
    if (const auto from_commit = snapshots::changes_from_commit(store, code)) {
        dirty.emplace();
        for (const snapshots::CommitChange& change : *from_commit) {
            if (change.before) {
                dirty->push_back(change.path);
            }
        }
    }
    return CodeFacts{.id = *id,
                     .root = code.root,
                     .commit = code.commit,
                     .dirty = std::move(dirty),
                     .files = code.entries.size(),
                     .left_out = code.left_out,
                     .changed = std::move(changes.changed)};
}

Result<std::vector<std::string>> used_snapshots(Store& store)
{
    std::vector<std::string> used;
    const auto add = [&](const std::string& parent,
                         std::string (*reference)(const RunKey&)) -> Result<void> {
        const auto names = store.list(parent);
        if (!names) {
            return names.error().kind == Error::Kind::missing ? Result<void>()
                                                              : Result<void>(names.error());
        }
        for (const std::string& name : *names) {
            const auto key = RunKey::parse(name);
            const auto text = key ? store.read(reference(*key))
                                  : Result<std::string>(fail(Error::Kind::missing, name));
            if (!text && text.error().kind != Error::Kind::missing) {
                return Result<void>(text.error());
            }
            if (text) {
                TRY_ASSIGN(const auto found, snapshots::reference_from_json(*text));
                used.push_back(found.id);
            }
        }
        return Result<void>();
    };
    TRY(add(layout::runs(), layout::snapshot));
    TRY(add(layout::sweeps(), layout::sweep_snapshot));
    return used;
}

} // namespace gpuq::cli
