// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

namespace gpuq::tui {

/// Applies one message; returns the effects to perform. Pure.
std::vector<Effect> update(Model& model, Message message);

/// Whether a text contains the one that / and n search for: lower case matches either case, as in
/// less -i.
bool is_in(std::string_view text, std::string_view sought);

} // namespace gpuq::tui
