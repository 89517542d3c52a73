// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Maximum number of hosts in one list.
constexpr std::size_t k_most_hosts = 65536;

/// Expands a Slurm host list (scontrol(1), "hostlist"): `gpu01`, `a,b`, `gpu[01-04,07]`, in the
/// order given. Only one bracket per name is supported. `usage` with the reason for anything else,
/// including a duplicate host.
Result<std::vector<std::string>> expand_hosts(std::string_view text);

/// The hosts as a list in the same notation and order: consecutive numbers of the same width become
/// a range, and ranges after the same name share its bracket.
std::string host_list(const std::vector<std::string>& hosts);

} // namespace gpuq
