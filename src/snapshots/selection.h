// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::snapshots {

/// How a file is known.
enum class Origin {
    tracked,   ///< by git
    untracked, ///< by git, and not ignored; or there is no git
    named,     ///< a word of the program's command line
};

/// Whether a file belongs to the code of a directory, rather than to its data or output: source
/// code, programs and libraries, and their configuration. A program may write configuration files
/// (JSON, YAML, ...) itself, so of these only those that git tracks count; without git, all but
/// JSON. A word of the command line counts even if it is of another kind, except data (CSV, logs,
/// checkpoints, images, ...), which may be output. Files of more than 1 MiB never count, except
/// executable programs and shared libraries of up to 64 MiB.
bool is_code(std::string_view path, std::uint64_t size, bool executable, Origin origin,
             bool with_git);

/// The kind of a file of a snapshot, by its name and mode.
enum class Kind {
    source,        ///< or a program or library
    configuration, ///< which a program may also write itself
    other,         ///< a word of the command line
};
Kind kind_of(std::string_view path, bool executable);

/// The files of a directory that a snapshot may contain.
struct Candidates {
    struct File {
        std::string path; ///< relative to the root
        Origin origin = Origin::untracked;
    };
    std::string root; ///< the top of the git work tree, else the directory itself
    bool with_git = false;
    std::string commit;           ///< the current one; empty: none
    std::vector<File> files = {}; ///< sorted by path, each once; may include missing ones
};

/// Lists the files: with git, the tracked ones and those that are untracked and not ignored, also
/// in submodules; otherwise all below `directory`, except hidden directories, virtual environments
/// and caches. `command` is the command line. Executes git, if the directory has a work
/// tree that git accepts. `busy` if there are more than 20,000: naming the directory. Unless
/// `thorough`, since on a network file system listing many entries takes long: the home directory
/// does not count as a work tree; `busy` if git takes longer than `patience`; and without git,
/// `missing` for the home directory and for one with more than 2,000 entries.
Result<Candidates> list_files(const std::string& directory, const std::vector<std::string>& command,
                              bool thorough,
                              std::chrono::milliseconds patience = std::chrono::seconds(10));

} // namespace gpuq::snapshots
