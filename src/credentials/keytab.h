// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::credentials {

/// Whose keys are in a keytab (format 2, which MIT and Heimdal write): each principal once, in the
/// order of the file, sanitised. The bytes may be anybody's: nothing is read beyond them. `usage`:
/// they are no keytab, or no key is in it.
Result<std::vector<std::string>> principals_in_keytab(std::string_view keytab);

} // namespace gpuq::credentials
