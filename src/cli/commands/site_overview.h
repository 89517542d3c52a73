// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/result.h"

#include <string>

namespace gpuq::cli {

/// `gpuq site --overview DIR`: writes the overview that all users of this host read
/// (runs/insight/shared_overview.h), if a process has read the last one and it is not too young.
/// `denied`, after removing the file, if Slurm hides anything from users. `missing` or `denied` for
/// the directory.
Result<int> write_shared_overview(Services& services, const std::string& directory);

} // namespace gpuq::cli
