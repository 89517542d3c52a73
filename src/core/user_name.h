// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq {

/// The name of a user of this machine and its number, as in `ben (1001)`; the number alone when it
/// has no name. Asks the name service, which may take long: for error messages.
std::string user_name(unsigned uid);

} // namespace gpuq
