// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

/// Lines that a step has printed on stderr, for messages to the user.
namespace gpuq::cli {

/// Why srun did not start the supervisor: the first line of its output, without its name.
std::string srun_message(std::string_view printed);
/// The last line that a step reported, without the prefix, sanitised.
std::string last_line(std::string_view printed);

} // namespace gpuq::cli
