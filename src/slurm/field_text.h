// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Values of fields, as scontrol and sacctmgr print and accept them; pure.
namespace gpuq::slurm {

/// A comma-separated list without duplicates and empty items, in alphabetical order.
std::string sorted(std::string_view list);
/// `1-02:30:00` in minutes; other text is returned unchanged.
std::string minutes_in(const std::string& text);
/// Appends the arguments that change one list of flags to another: `Flags-=A`, `Flags+=B`.
void flag_arguments(std::string_view keyword, std::string_view actual, std::string_view desired,
                    std::vector<std::string>& arguments);

} // namespace gpuq::slurm
