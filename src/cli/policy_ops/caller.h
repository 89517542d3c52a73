// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <cstdint>
#include <string>

namespace gpuq::cli {

/// The user for whom gpuq runs: the one who called sudo, if an account with Slurm's rights runs
/// gpuq for users (man gpuq-reserve, gpuq-extend).
struct Caller {
    std::string name;
    std::uint32_t uid = 0;
    bool by_sudo = false; ///< another account has Slurm's rights
};

Result<Caller> caller_of(Services& services);

} // namespace gpuq::cli
