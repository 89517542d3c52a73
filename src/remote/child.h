// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <string>
#include <vector>

/// What starting a child process takes.
namespace gpuq::remote {

struct Pipe {
    Descriptor read, write;
};
/// Closed at exec. `io`.
Result<Pipe> new_pipe();

/// As execve takes them, of words that have to stay where they are.
std::vector<char*> pointers(std::vector<std::string>& words);

} // namespace gpuq::remote
