// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

/// A line that is being typed. Pure.
namespace gpuq::tui {

/// A key other than Enter and Esc.
void edit(Prompt& prompt, const Key& key);

} // namespace gpuq::tui
