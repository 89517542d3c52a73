// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpuq::checkpoint {

/// Where a program writes its checkpoints.
struct Place {
    std::string directory; ///< absolute
    /// Relative to the directory, or absolute: `*` matches any characters of one path component,
    /// `?` one character. Each match is a file or a directory that is one checkpoint.
    std::string pattern;
};

enum class Verdict : std::uint8_t {
    whole,      ///< complete: a program can resume from it
    incomplete, ///< a part is missing, unless a program is still writing it
    unsettled,  ///< not known to be complete and not yet seen unchanged twice, or not readable
};
constexpr Verdict last_of(Verdict)
{
    return Verdict::unsettled;
}

struct Found {
    std::string path; ///< absolute
    Verdict verdict = Verdict::unsettled;
    std::string why;         ///< if not complete: one sentence without a full stop
    Time modified;           ///< the newest modification time in it
    std::uint64_t bytes = 0; ///< total size
    std::uint64_t inode = 0; ///< of the file or directory itself
    /// From its content (trainer_state.json), else from its name (names.h).
    std::optional<std::uint64_t> step;

    bool operator==(const Found&) const = default;
};

} // namespace gpuq::checkpoint
