// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// Runs gpuq with these arguments as another account, by `sudo -n`, and returns its exit status.
/// Messages of both on stderr are shown, output only if requested. `denied` if sudo does not
/// permit it: the message refers to the man page `page`.
enum class SudoOutput { hidden, shown };
Result<int> run_as(Services& services, const std::string& account,
                   const std::vector<std::string>& arguments, const std::string& page,
                   SudoOutput output = SudoOutput::hidden);

} // namespace gpuq::cli
