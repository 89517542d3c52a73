// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>

namespace gpuq::sim {

/// An index for operator[]. Machines and jobs refer to things by indexes of type `int`.
inline std::size_t at(int index)
{
    return static_cast<std::size_t>(index);
}

} // namespace gpuq::sim
