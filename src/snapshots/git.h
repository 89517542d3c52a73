// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::snapshots {

/// The output of a git command in a directory. git takes no locks, fetches nothing, and executes
/// nothing that the repository names as a file system monitor. Use only commands that read neither
/// attributes nor the files of the work tree: a repository's own configuration can name programs
/// for these (filters, text conversions). nullopt: there is no git, it refuses the directory, it
/// fails, or it takes longer than `limit`.
std::optional<std::string> git(const std::string& directory,
                               const std::vector<std::string>& arguments,
                               std::optional<std::chrono::milliseconds> limit = {});

/// The current commit of a work tree that git accepts; empty: none. Executes git only where the
/// files of the repository are in another layout than the usual one.
std::string current_commit(const std::string& root);

/// The identity of a commit, file or tree: 40 or 64 hexadecimal digits.
bool is_object_id(std::string_view text);

} // namespace gpuq::snapshots
