// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Values of fields in Slurm's notation.
namespace gpuq::govern {

std::set<std::string> as_set(std::string_view list);
std::string joined(const std::set<std::string>& names);

/// `gres/gpu=4,node=1`; items without a valid number are left out.
std::map<std::string, double> as_amounts(std::string_view tres);
std::string joined(const std::map<std::string, double>& amounts);

/// The nodes in a host list or `ALL`. A list that can't be parsed counts as the name of one node.
std::set<std::string> as_nodes(const std::string& list, const std::vector<std::string>& all_nodes);

std::optional<std::int64_t> as_number(std::string_view text);

/// A time from slurm.conf without its optional zero days: `0-02:00:00` is `02:00:00`.
std::string plain_time(std::string_view text);

} // namespace gpuq::govern
