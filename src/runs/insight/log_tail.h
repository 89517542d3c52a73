// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"
#include "runs/records/log_times.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// The growing end of one stream of a run, or of another file, for display on a screen. However
/// large the file is and however fast it grows, one call reads at most k_window bytes. For the
/// complete log in order see LogReader.
class LogTail {
public:
    static constexpr std::uint64_t k_window = 256 << 10;

    LogTail(Store& store, RunKey key, Stream stream);
    /// Of one file in the state directory.
    LogTail(Store& store, std::string path);

    struct News {
        std::string bytes;
        bool anew = false; ///< discard the bytes shown before
        enum class Why {
            opened,
            next_link,
            cut,
            replaced,
            fast
        } why = Why::opened;       ///< with `anew`; fast: the file grew by more than k_window
        std::uint64_t skipped = 0; ///< with `anew`: bytes of the file before these
        LinkNumber link;
        std::vector<LogTimes::Mark> times; ///< with `anew` all of them, else new ones
    };
    /// The new bytes and times; nothing if there are none. An `io` error may be gone at the next
    /// call.
    Result<std::optional<News>> next();

private:
    Store& m_store;
    std::optional<RunKey> m_key; ///< unset: m_path
    std::string m_path;
    Stream m_stream = Stream::out;
    std::optional<LinkNumber> m_link;
    std::uint64_t m_at = 0;
    std::optional<LogTimes> m_times; ///< of m_link
    std::string m_known;             ///< the last bytes before m_at, to detect a replaced file
};

} // namespace gpuq
