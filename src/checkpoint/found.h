// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpuq::checkpoint {

/// Where a program leaves its checkpoints.
struct Place {
    std::string folder; ///< absolute
    /// Relative to the folder, or absolute: `*` is any characters of one path component, `?` one.
    /// What matches is a file or a folder that is one checkpoint.
    std::string pattern;
};

enum class Verdict : std::uint8_t {
    whole,      ///< a program can resume from it
    incomplete, ///< something is missing, as long as nobody goes on writing it
    unsettled,  ///< it can't tell, and was not seen unchanged twice; or it can't be read
};

struct Found {
    std::string path; ///< absolute
    Verdict verdict = Verdict::unsettled;
    std::string why;         ///< of one that is not whole: one sentence without a full stop
    Time modified;           ///< the newest time of modification in it
    std::uint64_t bytes = 0; ///< all of it
    std::uint64_t inode = 0; ///< of the file or folder itself
    /// What it says itself (trainer_state.json), else what its name says (names.h).
    std::optional<std::uint64_t> step;

    bool operator==(const Found&) const = default;
};

} // namespace gpuq::checkpoint
