// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <string>

namespace gpuq::tune {

/// As in a policy: `90s`, `30m`, `2h`, `7d`.
std::string yaml_time(sim::Seconds time);

} // namespace gpuq::tune
