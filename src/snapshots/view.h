// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "snapshots/manifest.h"

#include <string>
#include <vector>

namespace gpuq::snapshots {

/// How the files of a snapshot differ from those in its root at the moment.
struct Changes {
    std::vector<std::string> changed; ///< other content or mode, or not a regular file
    std::vector<std::string> missing; ///< no longer there
    bool empty() const { return changed.empty() && missing.empty(); }
};

/// Compares by stamp, else by content. Files that can't be read count as changed. Never follows a
/// symbolic link below the root.
Changes changes_since(const Manifest& manifest);

/// How `enter_view` handles files that are no longer there.
enum class Missing {
    left,     ///< not put back
    put_back, ///< if possible
    required, ///< or the program must not be started
};

/// Lets this process, and all that it starts, see the files of the snapshot at their own paths,
/// read-only, in a mount namespace of its own (mount_namespaces(7)): copies in memory, mounted over
/// the files. Everything else in their directories is as before, new files too, and so is a file of
/// the snapshot that has not been changed and is not source: the program may write it. Without
/// root's rights it also enters a user namespace, in which set-user-ID programs get no other
/// rights.
///
/// Nothing can be mounted where no file is: a missing file is put back into its directory, until
/// `remove_put_back`. Where that is impossible, or a symbolic link or directory has its name by
/// now, the program gets the current state, unless the files are required.
///
/// Call it while single-threaded. After an error the process may be in an incomplete namespace, and
/// must not start the program from there, unless the error is `denied`: the system allows no
/// namespaces, and nothing has changed. Otherwise `io`.
Result<void> enter_view(Store& store, const Manifest& manifest, Missing missing);

/// Removes the files that `enter_view` has put back, except those that the user has changed and
/// those that another program still needs. Returns their number. Call it when a program has ended.
std::size_t remove_put_back(const Manifest& manifest);

/// Whether the program has been started before, by an earlier link of the run or attempt at the
/// try. A file that is neither source nor configuration, but was named on the command line, may be
/// its output: it is then left as it is.
enum class Started { first, again };

/// Executes a program in the view of a snapshot, if the files differ from it. Missing files are put
/// back if the snapshot is required or that of a commit. A line about that, or about a failure,
/// goes to stderr. Returns only without a program: its exit status, which is 125 if the snapshot is
/// required but can't be provided.
int execute(Store& store, const Reference& reference, const std::vector<std::string>& argv,
            Started started = Started::first);

} // namespace gpuq::snapshots
