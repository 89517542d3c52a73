// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>

namespace gpuq::cli {

/// Asks the user a question that is answered by y or n. Without a terminal to ask on:
/// `usage` with the text `refusal`.
Result<bool> confirmed(const std::string& question, const std::string& refusal);

} // namespace gpuq::cli
