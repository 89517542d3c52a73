// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <string>
#include <string_view>
#include <vector>

/// Data for the completion scripts of all shells.
namespace gpuq::cli {

/// A command that lists the runs that can be named, one word each.
constexpr std::string_view k_list_runs = "gpuq ls --no-header --columns id 2>/dev/null";

/// The verb's options, including the global ones but not those reserved or hidden.
std::vector<Option> options_of(const Verb& verb);
/// The global options.
std::vector<Option> options_of_all();

/// The possible first operands of a verb: `up`, `down` ... for `cluster up|down`; all verbs for
/// `help`.
std::vector<std::string> choices_of(const Verb& verb);
bool takes_runs(const Verb& verb);
bool takes_program(const Verb& verb);
/// The values of an option that accepts only a fixed set.
std::vector<std::string> values_of(const Option& option);
bool takes_file(const Option& option);

std::vector<std::string> verb_names();
std::string joined(const std::vector<std::string>& arguments, std::string_view separator = " ");

} // namespace gpuq::cli
