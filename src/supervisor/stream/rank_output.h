// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <array>
#include <cstdint>
#include <poll.h>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// The output of one rank: forwarded to the task's own streams, unchanged and in order, and saved
/// in `out.log.R` and `err.log.R` in the link's directory. If a file cannot be written, those bytes
/// are missing, but later ones keep their offsets; the streams are always complete.
class RankOutput {
public:
    static Result<RankOutput> open(int link_directory, int rank);
    /// The pipes to be stdout and stderr of the rank's process.
    std::array<int, 2> program_side() const;
    /// Call once that process exists.
    void close_program_side();

    /// The descriptors to poll: both streams; -1 for one that has ended.
    std::array<pollfd, 2> polled() const;
    /// Forwards available output. Blocks until it is read.
    void pass(const std::array<pollfd, 2>& ready);
    bool ended() const { return !m_streams[0].from && !m_streams[1].from; }

private:
    struct Stream {
        Descriptor from, program_side, log;
        std::uint64_t size = 0;
    };
    std::array<Stream, 2> m_streams;
};

} // namespace gpuq::supervisor
