// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/comparison.h"
#include "tui/base/picture.h"

namespace gpuq::cli {

/// The comparison of marked runs in `gpuq top`. Pure.
tui::Comparison top_comparison(const Comparison& comparison, Time now);

} // namespace gpuq::cli
