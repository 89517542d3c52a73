// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

/// Editing of a line being typed. Pure.
namespace gpuq::tui {

/// Any key other than Enter and Esc.
void edit(Prompt& prompt, const Key& key);

} // namespace gpuq::tui
