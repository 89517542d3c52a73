// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <deque>

namespace gpuq::tui {

/// Adds a message for the screen. It replaces an older picture, older details of the same run or an
/// older comparison that has not been taken yet: their number does not depend on how long the
/// screen is busy.
void add_newest(std::deque<Message>& messages, Message message);

} // namespace gpuq::tui
