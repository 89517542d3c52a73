// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

namespace gpuq::tui {

/// Takes in one message; gives what is to be done. Pure.
std::vector<Effect> update(Model& model, Message message);

/// What / and n look for: small letters mean either case, as in less -i.
bool is_in(std::string_view text, std::string_view sought);

} // namespace gpuq::tui
