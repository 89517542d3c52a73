// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>

namespace gpuq {

/// The bytes of a cache of any type as a FILE cache of it would have them, by libkrb5.so.3, which
/// need not be there. It may block. `missing`: no library, or no such cache; `io` with its words.
Result<std::string> cache_by_krb5(const std::string& name);

} // namespace gpuq
