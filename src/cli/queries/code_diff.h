// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "snapshots/manifest.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// A file that differs between two snapshots, or between one and the current files.
struct FileChange {
    std::string path;
    enum class Kind { changed, added, removed } kind = Kind::changed;
    std::string diff; ///< as printed by diff -u; not sanitised. Empty: only the mode, or no diff
};

/// The differences from `before` to `after`, or to the current files of the directory (without
/// `after`; new files are not known then). Executes diff(1). `io`.
Result<std::vector<FileChange>> code_diff(Store& store, const snapshots::Manifest& before,
                                          const snapshots::Manifest* after);

/// The differences from the git commit that a snapshot is based on to the snapshot. `missing`: it
/// has none, or the repository no longer has it.
Result<std::vector<FileChange>> code_diff_to_commit(Store& store, const snapshots::Manifest& code);

} // namespace gpuq::cli
