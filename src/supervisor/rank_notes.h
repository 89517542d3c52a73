// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/memory_events.h"

#include <map>
#include <optional>
#include <string>

/// What the ranks of a link tell its supervisor, which may run on another node: small files in the
/// folder `ranks` of the link, there only when there is something to tell. Callers pass a
/// descriptor of the link's folder.
///
///     ranks/first      the first rank that did not end with status 0
///     ranks/memory.R   processes killed for memory on the node of rank R, as R has seen it
namespace gpuq::supervisor {

struct RankEnd {
    int rank = 0;
    std::string node;
    int wait_status = 0; ///< as waitpid gives it
    bool operator==(const RankEnd&) const = default;
};

struct RankNotes {
    std::optional<RankEnd> first;
    std::map<std::string, MemoryKills> memory; ///< by node, the highest of its ranks
};

/// Makes the folder. What goes wrong is not reported: then there are no notes.
void make_rank_notes(int link_folder);
/// Of several ranks, on whatever nodes, only the first leaves a note.
void note_end(int link_folder, const RankEnd& end);
/// Replaces this rank's note.
void note_memory(int link_folder, int rank, const std::string& node, const MemoryKills& kills);
/// All notes as they are now. Blocks as the file system does.
RankNotes read_rank_notes(int link_folder);

} // namespace gpuq::supervisor
