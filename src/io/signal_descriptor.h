// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <initializer_list>
#include <span>

namespace gpuq {

/// Blocks these signals in the calling thread, and in the threads and programs that it starts
/// unless they unblock them, and returns a descriptor that reports them (signalfd(2)):
/// non-blocking, closed on exec. Empty if the process has too many descriptors.
Descriptor block_and_report(std::span<const int> signals);
Descriptor block_and_report(std::initializer_list<int> signals);

} // namespace gpuq
