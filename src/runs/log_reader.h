// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/records/link_log.h"

#include <optional>

namespace gpuq {

/// The log of a run: the logs of its links, one after the other. Reads only the disk.
class LogReader {
public:
    LogReader(Store& store, const RunKey& key);

    /// The next item of the whole log. `writer` is the state of the newest link's writer; `End`
    /// is returned only when it is gone.
    Result<log::Item> next(Writer writer, LinkLog::Steady now);
    /// Skips this many bytes of output, across links.
    void pass_over(std::uint64_t bytes) { m_log->pass_over(bytes); }
    /// The number of bytes still to skip.
    std::uint64_t to_pass() const { return m_log->to_pass(); }
    /// Where the last output came from: its link, and the offset of the byte after it.
    LinkNumber link() const { return m_link; }
    std::uint64_t offset(Stream stream) const { return m_log->offset(stream); }

private:
    Store& m_store;
    RunKey m_key;
    LinkNumber m_link{1};
    LinkNumber m_newest{1};
    std::optional<LinkLog> m_log; ///< never empty
};

} // namespace gpuq
