// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"

#include <string>

namespace gpuq::sweeps {

/// Whether there is certainly no file at this path; false if that can't be read.
inline bool is_missing(Store& store, const std::string& path)
{
    const auto size = store.size(path);
    return !size && size.error().kind == Error::Kind::missing;
}

} // namespace gpuq::sweeps
