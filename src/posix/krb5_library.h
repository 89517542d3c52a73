// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>

namespace gpuq {

/// Reads a credential cache of any type and converts it to the FILE format, using libkrb5.so.3 if
/// it is installed. Can block. `missing` when the cache has no tickets; else `io` with the
/// library's message, or when the library is not installed.
Result<std::string> cache_by_krb5(const std::string& name);

} // namespace gpuq
