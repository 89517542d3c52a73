// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/memory_events.h"

#include <map>
#include <optional>
#include <string>

/// Messages from the ranks of a link to its supervisor, which may run on another node: small files
/// in the link's directory `ranks`, written only when there is something to report. Callers pass a
/// descriptor of the link's directory.
///
///     ranks/first      the first rank that did not end with status 0
///     ranks/memory.R   processes killed for memory on the node of rank R, as seen by R
namespace gpuq::supervisor {

struct RankEnd {
    int rank = 0;
    std::string node;
    int wait_status = 0; ///< as returned by waitpid
    bool operator==(const RankEnd&) const = default;
};

struct RankNotes {
    std::optional<RankEnd> first;
    std::map<std::string, MemoryKills> memory; ///< by node, the highest count of its ranks
};

/// Creates the directory. Errors are not reported: then there are no notes.
void make_rank_notes(int link_directory);
/// If several ranks call this, on any nodes, only the first leaves a note.
void note_end(int link_directory, const RankEnd& end);
/// Replaces this rank's note.
void note_memory(int link_directory, int rank, const std::string& node, const MemoryKills& kills);
/// Reads all notes. Blocks for as long as the file system does.
RankNotes read_rank_notes(int link_directory);

} // namespace gpuq::supervisor
