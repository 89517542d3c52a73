// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Snapshots: the code of a working directory as it was at one moment, from which a run starts even
/// if the files have been changed since.
namespace gpuq::snapshots {

/// The properties of a file that change whenever its content is changed.
struct Stamp {
    std::uint64_t inode = 0;
    std::int64_t modified = 0, changed = 0; ///< nanoseconds since 1970
    std::uint64_t size = 0;
    bool operator==(const Stamp&) const = default;
};

/// A file of a snapshot.
struct Entry {
    std::string path; ///< relative to the root; without `.` and `..`
    bool executable = false;
    std::string hash;         ///< SHA-256 of the content, 64 hexadecimal digits
    std::string pack;         ///< the pack that has the content: 64 hexadecimal digits
    std::uint64_t offset = 0; ///< in the pack
    Stamp stamp = {};         ///< when it was read
    bool operator==(const Entry&) const = default;
};
/// The path stays below the root.
bool is_valid(const Entry& entry);

/// A snapshot: snapshots/trees/ID. Entries are sorted by path.
struct Manifest {
    std::string root;           ///< absolute path of the directory
    std::string commit;         ///< of git, which the files are based on; empty: none
    std::uint64_t left_out = 0; ///< files that are data or output, by name or size
    std::vector<Entry> entries = {};
    bool operator==(const Manifest&) const = default;
};

/// The identity of a snapshot: 64 hexadecimal digits, the same for the same root, commit and files.
std::string id_of(const Manifest& manifest);
bool is_id(std::string_view text);

std::string to_text(const Manifest& manifest);
/// `usage` if it is not a manifest of this version.
Result<Manifest> manifest_from_text(std::string_view text);

/// nullptr if the snapshot has no such file.
const Entry* find(const Manifest& manifest, std::string_view path);

/// SHA-256 in hexadecimal digits.
std::string sha256(std::string_view bytes);

/// The snapshot of a run or sweep: runs/KEY/snapshot.json, sweeps/KEY/snapshot.json.
struct Reference {
    std::string id;
    /// The user asked for it: a node that can't provide it doesn't start the program. Otherwise the
    /// program is started with a warning, from the current files.
    bool required = false;
    bool operator==(const Reference&) const = default;
};
std::string to_json(const Reference& reference);
Result<Reference> reference_from_json(std::string_view text);

/// Below the state directory.
std::string tree_path(std::string_view id);
std::string pack_path(std::string_view pack);
/// The newest manifest of a root, with which the next snapshot is compared.
std::string latest_path(std::string_view root);
constexpr const char* k_trees = "snapshots/trees";
constexpr const char* k_packs = "snapshots/packs";

} // namespace gpuq::snapshots
