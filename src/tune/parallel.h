// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <functional>

namespace gpuq::tune {

/// Calls `work` with 0 to `count` - 1, each once, in as many threads as the machine has
/// processors, and returns when all calls have returned. Meanwhile the calling thread calls `tick`
/// five times a second. Neither may throw.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work,
                 const std::function<void()>& tick);

} // namespace gpuq::tune
