// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/profile_text.h"

#include <string>

namespace gpuq::cli {

/// The profile as an HTML page (report/html.h): figures, advice, phases, a chart of each measure
/// over time with the links marked, and the loss. Unknown values are gaps. Pure.
std::string profile_page(const WholeProfile& whole, Time now);

} // namespace gpuq::cli
