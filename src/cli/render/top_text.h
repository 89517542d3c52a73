// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/top_picture.h"

#include <cstddef>
#include <optional>
#include <string>

namespace gpuq::cli {

/// For `gpuq top --once`: whether a GPU is free, the GPUs and all runs, as tables. `columns`: the
/// terminal's; unset: as wide as necessary.
std::string top_text(const TopFound& found, Time now, std::optional<std::size_t> columns);

} // namespace gpuq::cli
