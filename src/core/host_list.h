// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// More hosts than this in one list are refused.
constexpr std::size_t k_most_hosts = 65536;

/// The hosts of a list as Slurm writes it (scontrol(1), "hostlist"): `gpu01`, `a,b`,
/// `gpu[01-04,07]`, in the order written. One bracket a name, as most sites have; `usage` with the
/// reason for anything else, and for a host that stands there twice.
Result<std::vector<std::string>> expand_hosts(std::string_view text);

} // namespace gpuq
