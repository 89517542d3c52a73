// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"

#include "core/run.h"
#include "telemetry/output_reader.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// The first and last progress of a link, from the beginning and the end of its log on disk.
struct LinkProgress {
    std::optional<telemetry::Progress> first, last; ///< as reported in the output
    std::optional<telemetry::Progress> began;       ///< where the link began (OutputReader)
    std::optional<telemetry::Bar> bar;              ///< its newest state
    telemetry::Curves curves;                       ///< from the end of the log
    std::optional<Time> written_at; ///< when the log was written; unset: not checked
};
/// `own`: the user's pattern (own_pattern).
LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link,
                           const telemetry::Pattern* own = nullptr);

/// The curves that the links of a run printed before a later one: all links are one training. Keeps
/// them from call to call, since those links have ended. Not thread-safe.
class EarlierCurves {
public:
    /// Those of the links before `link`, at most 32 of them; valid until the next call.
    const telemetry::Curves& before(Store& store, const RunKey& key, LinkNumber link,
                                    const telemetry::Pattern* own);

private:
    struct Kept {
        LinkNumber link{1};
        telemetry::Curves curves;
    };
    std::map<std::string, Kept> m_kept; ///< by the run's key
};

/// Likewise from one file: all of it, of a long one the last 8 MiB.
LinkProgress read_progress(Store& store, const std::string& path,
                           const telemetry::Pattern* own = nullptr);

/// `run --progress` sets this variable in the run's environment, so that a site or a project can
/// set it as well.
inline constexpr std::string_view k_progress_variable = "GPUQ_PROGRESS";

/// The pattern that a run was started with: from its request, else from the client's environment.
/// Nothing if the pattern can't be compiled.
std::optional<telemetry::Pattern> own_pattern(const Run& run);

} // namespace gpuq
