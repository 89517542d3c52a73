// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/use_records.h"

#include <string>
#include <string_view>
#include <vector>

/// What a person could do better with what their jobs had. Pure.
namespace gpuq {

struct UseAdvice {
    enum class Code { idle_gpus, unused_memory };
    Code code = Code::idle_gpus;
    int jobs = 0;
    double percent = 0; ///< of the measured time idle; of the memory used
    std::string text;   ///< a sentence for people
    bool operator==(const UseAdvice&) const = default;
};

/// `idle_gpus`, `unused_memory`.
std::string_view word(UseAdvice::Code code);

/// Out of whole jobs of a minute or more of which something was measured; nothing is said of
/// others.
std::vector<UseAdvice> advice_on(const std::vector<UseRecord>& records);

} // namespace gpuq
