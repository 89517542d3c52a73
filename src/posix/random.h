// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>

namespace gpuq {

/// Eight random bytes from the kernel, for RunKey::make and temporary names.
std::array<unsigned char, 8> random_bytes();

} // namespace gpuq
