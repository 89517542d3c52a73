// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sweeps/parameters.h"

#include <string>
#include <vector>

/// The command line of a try. Pure.
namespace gpuq::sweeps {

/// The sweep's command line with `{NAME}` replaced by the value of parameter NAME.
/// Braces around anything else stay as they are; `{{NAME}}` gives `{NAME}`. Values are not searched
/// for further placeholders.
std::vector<std::string> arguments_of_try(const std::vector<std::string>& command,
                                          const std::vector<std::string>& names,
                                          const Values& values);

/// The parameters that no argument contains: the program gets them only as variables.
std::vector<std::string> unused_parameters(const std::vector<std::string>& command,
                                           const std::vector<std::string>& names);

/// Variables of a try's program: GPUQ_TRY, its number, and GPUQ_PARAM_NAME for each parameter.
std::vector<std::pair<std::string, std::string>>
variables_of_try(std::size_t number, const std::vector<std::string>& names, const Values& values);

/// `lr=3e-4 batch=64`. Not sanitised.
std::string values_text(const std::vector<std::string>& names, const Values& values);

} // namespace gpuq::sweeps
