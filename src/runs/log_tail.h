// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpuq {

/// The end of one stream of a run, as it grows: what a screen shows. However large the file is and
/// however fast it grows, one look reads k_window at most. For all of a log, in order: LogReader.
class LogTail {
public:
    static constexpr std::uint64_t k_window = 256 << 10;

    LogTail(Store& store, RunKey key, Stream stream);

    struct News {
        std::string bytes;
        bool anew = false; ///< what came before is not to be shown any more
        enum class Why {
            opened,
            next_link,
            cut,
            replaced,
            fast
        } why = Why::opened;       ///< with `anew`;
                                   ///< fast: it grew by more than k_window
        std::uint64_t skipped = 0; ///< with `anew`: bytes of the file before these
        LinkNumber link;
    };
    /// What is new; nothing when there is nothing. `io` may be gone at the next look.
    Result<std::optional<News>> next();

private:
    Store& m_store;
    RunKey m_key;
    Stream m_stream;
    std::optional<LinkNumber> m_link;
    std::uint64_t m_at = 0;
    std::string m_known; ///< the last bytes before m_at: what another file does not have there
};

} // namespace gpuq
