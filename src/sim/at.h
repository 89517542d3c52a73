// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>

namespace gpuq::sim {

/// An index for operator[]. Indexes are `int` where a machine or job names something by one.
inline std::size_t at(int index)
{
    return static_cast<std::size_t>(index);
}

} // namespace gpuq::sim
