// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/formats.h"
#include "checkpoint/tree.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Judges a directory that is one checkpoint: Hugging Face, torch DCP, Megatron, DeepSpeed, Orbax,
/// or any other.
namespace gpuq::checkpoint {

/// A part of the directory and the information read from it.
struct ScannedFile {
    Part part;
    Judgement judgement{};            ///< of a file
    std::vector<std::string> names{}; ///< files that must exist next to it, as listed in the file
    std::optional<std::uint64_t> step{};
    int error = 0; ///< an errno if the file can't be read, else 0
};

/// Reads the information in a file with this name about itself and other files: trainer_state.json,
/// *.index.json, `latest`, latest_checkpointed_iteration.txt, or a format of formats.h.
ScannedFile scan(const Part& part, std::string_view name, Bytes& bytes);

struct DirectoryJudgement {
    Judgement judgement; ///< `settles` and `unknown` mean the same: check again
    std::optional<std::uint64_t> step;
    std::string unreadable; ///< a file that can't be read, and why; the judgement is then invalid

    bool operator==(const DirectoryJudgement&) const = default;
};

/// `is_all` is false if the directory contains more than `scanned`.
DirectoryJudgement check_directory(const std::vector<ScannedFile>& scanned, bool is_all);

/// True if these parts look like more than one checkpoint: Megatron's tracker exists, or several
/// directories differ only in a number (`checkpoint-500`, `checkpoint-1000`), other than those of
/// ranks.
bool holds_several(const std::vector<Part>& parts);

} // namespace gpuq::checkpoint
