// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/use_records.h"

#include <string>
#include <string_view>
#include <vector>

/// Advice on how a user's jobs could make better use of their resources. Pure.
namespace gpuq {

struct UseAdvice {
    enum class Code { idle_gpus, unused_memory };
    Code code = Code::idle_gpus;
    int jobs = 0;
    double percent = 0; ///< idle share of the measured time; used share of the memory
    std::string text;   ///< a sentence for the user
    bool operator==(const UseAdvice&) const = default;
};

/// `idle_gpus`, `unused_memory`.
std::string_view word(UseAdvice::Code code);

/// Considers only whole jobs of a minute or more with measurements.
std::vector<UseAdvice> advice_on(const std::vector<UseRecord>& records);

} // namespace gpuq
