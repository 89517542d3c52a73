// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq {

/// Name and number of a local user, as in `ben (1001)`; only the number if it has no name. Queries
/// the name service, which can be slow: use it for error messages.
std::string user_name(unsigned uid);

} // namespace gpuq
