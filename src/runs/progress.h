// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"

#include "telemetry/progress.h"

#include <optional>

namespace gpuq {

/// Where a link began, and has come to: out of the beginning and the end of its log on disk.
struct LinkProgress {
    std::optional<telemetry::Progress> first, last;
};
LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link);

} // namespace gpuq
