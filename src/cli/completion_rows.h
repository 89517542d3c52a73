// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

#include <string>
#include <string_view>
#include <vector>

/// What the completion scripts of all shells are made of.
namespace gpuq::cli {

/// A command that lists the runs that can be named, a word each.
constexpr std::string_view k_list_runs = "gpuq ls --no-header --columns id 2>/dev/null";

/// Options of a verb, global ones included, without reserved ones.
std::vector<Option> options_of(const Verb& verb);
/// The global ones.
std::vector<Option> options_of_all();

/// What may follow the verb's name: `up`, `down` ... of `cluster up|down`; verbs for `help`.
std::vector<std::string> choices_of(const Verb& verb);
bool takes_runs(const Verb& verb);
bool takes_program(const Verb& verb);
/// The values of an option that has only a few.
std::vector<std::string> values_of(const Option& option);
bool takes_file(const Option& option);

std::vector<std::string> verb_names();
std::string joined(const std::vector<std::string>& words, std::string_view separator = " ");

} // namespace gpuq::cli
