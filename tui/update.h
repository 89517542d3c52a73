// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

namespace gpuq::tui {

/// Applies one message; returns the effects to perform. Pure.
std::vector<Effect> update(Model& model, Message message);

} // namespace gpuq::tui
