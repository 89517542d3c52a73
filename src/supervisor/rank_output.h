// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <array>
#include <cstdint>
#include <poll.h>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// The output of one rank: handed on to the task's own streams, unchanged and in order, and kept in
/// `out.log.R` and `err.log.R` of the link's folder. A file that can't be written loses the bytes,
/// not their places; the streams never do.
class RankOutput {
public:
    static Result<RankOutput> open(int link_folder, int rank);
    /// In the rank's process: its stdout and stderr from now on.
    void become_streams() const;
    /// In its parent, once that process is there.
    void close_program_side();

    /// What to poll: both streams, -1 for one that has ended.
    std::array<pollfd, 2> polled() const;
    /// Hands on what is there. Blocks as long as nobody takes it.
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
