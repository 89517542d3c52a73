// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The kinds of the words of a command line, judged by their names alone: interpreters, launchers
/// and scripts.
namespace gpuq {

/// True for `python3` and `/opt/x/bin/python3.12`.
bool is_python(std::string_view program);

/// True for `bash` and `/bin/sh`, which look for a script in PATH too.
bool is_shell(std::string_view program);

/// True for names such as `train.py` and `run.sh`.
bool is_script_name(std::string_view name);

/// The number of words at the start of a command line that are the program; the others are its
/// arguments. One, except for:
///
/// an interpreter (python3, bash, perl, ...): up to its script, the module after `-m`, or the code
/// after `-c`;
///
/// a launcher, which starts another program (torchrun, accelerate, mpirun, env, nsys, ...): up to
/// the first word that is a script by its ending, or that is an interpreter, whose script then ends
/// the program. Nothing if there is no such word.
///
/// `command` must not be empty.
std::optional<std::size_t> size_of_program(const std::vector<std::string>& command);

/// The index of the script in the command line of an interpreter or of a launcher: 2 for
/// `python3 -u train.py 3` and for `accelerate launch train.py`, 4 for `mpirun -n 2 python3
/// train.py`. Nothing for code, a module or standard input, and where the words do not determine
/// it. `command` must not be empty.
std::optional<std::size_t> index_of_script(const std::vector<std::string>& command);

/// The index of the program that env, nice, nohup, setsid, stdbuf or timeout starts: 3 for
/// `timeout -v 1h ./train`. Nothing for another program, for options that change where the program
/// is (env -C, env PATH=...) or are not known here, and if there is none. `command` must not be
/// empty.
std::optional<std::size_t> index_of_wrapped(const std::vector<std::string>& command);

/// True for `cd`, `export`, `ulimit` and other commands that only a shell has.
bool is_shell_builtin(std::string_view name);

/// True for `LR=0.1`, with which a shell sets a variable.
bool is_assignment(std::string_view word);

} // namespace gpuq
