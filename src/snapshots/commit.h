// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "snapshots/manifest.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::snapshots {

/// A file of a git commit.
struct CommittedFile {
    std::string repository; ///< below the root, with a slash at its end: a submodule; else empty
    std::string object;     ///< identity of its content
    bool executable = false;
    bool is_code = false; ///< selection.h
};

/// A file that a snapshot has in another form than the commit that it was based on.
struct CommitChange {
    std::string path;
    std::optional<CommittedFile> before; ///< nullopt: the commit does not have it
    const Entry* after = nullptr;        ///< of the manifest; nullptr: removed
};

/// Compares a snapshot with its commit, byte for byte and mode by mode, without the conversions
/// that git applies at a checkout. A file of the commit that is not in
/// the snapshot counts as removed only if it is code; files of submodules whose commit is not there
/// do not count. Reads the whole snapshot and executes git. Sorted by path. `missing`: it has no
/// commit, or the repository no longer has it.
Result<std::vector<CommitChange>> changes_from_commit(Store& store, const Manifest& manifest);

/// The content of a file in the commit; nullopt: the repository no longer has it.
std::optional<std::string> committed_content(const Manifest& manifest, const CommittedFile& file);

} // namespace gpuq::snapshots
