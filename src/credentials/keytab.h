// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::credentials {

/// Lists the principals in a keytab (format 2, as written by MIT and Heimdal): each once, in file
/// order, sanitised. The bytes are untrusted: nothing is read beyond them. `usage` if they are not
/// a keytab or contain no key.
Result<std::vector<std::string>> principals_in_keytab(std::string_view keytab);

} // namespace gpuq::credentials
