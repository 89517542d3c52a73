// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

namespace gpuq {

/// The present of tests that do not depend on its value: 18 November 2026, 11:06:40 UTC.
inline constexpr Time k_now{std::chrono::seconds{1'795'000'000}};

} // namespace gpuq
