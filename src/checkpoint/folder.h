// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/formats.h"
#include "checkpoint/tree.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A folder that is one checkpoint: Hugging Face, torch DCP, Megatron, DeepSpeed, Orbax, or any.
namespace gpuq::checkpoint {

/// A part of it and what was read in it.
struct Seen {
    Part part;
    Judgement judgement{};            ///< of a file
    std::vector<std::string> names{}; ///< what must be there too, beside it, as the file says
    std::optional<std::uint64_t> step{};
    int error = 0; ///< of a file that can't be read: an errno, or 0
};

/// Reads what a file named so says of itself and of others: trainer_state.json, *.index.json,
/// `latest`, latest_checkpointed_iteration.txt, or a kind that formats.h knows.
Seen see(const Part& part, std::string_view name, Bytes& bytes);

struct FolderJudgement {
    Judgement judgement; ///< `settles` and `unknown` mean the same: look once more
    std::optional<std::uint64_t> step;
    std::string unreadable; ///< what can't be read, and why; then the judgement means nothing

    bool operator==(const FolderJudgement&) const = default;
};

/// `is_all` is false when there is more in the folder than `seen`.
FolderJudgement judge_folder(const std::vector<Seen>& seen, bool is_all);

/// Whether these parts look like more than one checkpoint: Megatron's tracker is there, or folders
/// that differ in a number only (`checkpoint-500`, `checkpoint-1000`), but for those of ranks.
bool holds_several(const std::vector<Part>& parts);

} // namespace gpuq::checkpoint
