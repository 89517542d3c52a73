// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace gpuq {

/// The program that SlurmAccounting executes: gpuq, in the directory of this program.
inline std::string accounting_program()
{
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gpuq";
}

} // namespace gpuq
