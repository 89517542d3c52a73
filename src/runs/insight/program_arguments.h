// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/redact.h"

#include <string>
#include <vector>

/// The arguments of a program by name. Pure.
namespace gpuq {

/// An argument; one that is repeated is listed once, with all its values.
struct ProgramArgument {
    std::string name;
    int values = 0;    ///< 0: a switch
    int times = 1;     ///< how often it is given
    std::string shown; ///< its values without secrets, separated by blanks
    std::string raw;   ///< with secrets, for comparisons only
};

struct ParsedProgram {
    std::string program;
    std::string script; ///< executed by the program: `train.py`, `-m package.train`; else empty
    std::vector<ProgramArgument> arguments; ///< in the order in which they are first given
};

/// Parses a command line without knowing the program's options: `--name value`, `--name=value`,
/// `-x value`, `-j4`, `name=value` (Hydra); other words are `argument 1`, `argument 2`, ... An
/// option takes the next word as its value unless that looks like an option; of numbers, it takes
/// all that follow (`--betas 0.9 0.999`). The options of a launcher before the script have its name
/// in front (`torchrun --nnodes`).
ParsedProgram parse_program(const std::vector<std::string>& program, const Redactor& redactor);

} // namespace gpuq
