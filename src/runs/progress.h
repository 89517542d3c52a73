// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"

#include "core/run.h"
#include "telemetry/output_reader.h"

#include <optional>
#include <string_view>

namespace gpuq {

/// Where a link began, and has come to: out of the beginning and the end of its log on disk.
struct LinkProgress {
    std::optional<telemetry::Progress> first, last; ///< that it told
    std::optional<telemetry::Progress> began;       ///< at or before the first (OutputReader)
    std::optional<telemetry::Bar> bar;              ///< its newest state
    telemetry::Curves curves;                       ///< of the end
    std::optional<Time> written_at;                 ///< the log; nothing: nobody has looked
};
/// `own`: the person's pattern (own_pattern).
LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link,
                           const telemetry::Pattern* own = nullptr);

/// `run --progress`: a variable of the run's environment, so that a site or a project can set it.
inline constexpr std::string_view k_progress_variable = "GPUQ_PROGRESS";

/// The pattern that a run was started with: of its request, else of the environment. Nothing also
/// for one that can not be compiled.
std::optional<telemetry::Pattern> own_pattern(const Run& run);

} // namespace gpuq
