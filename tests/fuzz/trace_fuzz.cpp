// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace gpuq;

/// Any text: parsing gives a trace in submission order, or an error with a message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size); // bytes are characters
    const auto trace = sim::parse_trace(text, "fuzz");
    if (!trace) {
        if (trace.error().text.empty()) {
            std::abort();
        }
        return 0;
    }
    const auto& jobs = trace->jobs;
    const bool ordered =
        std::is_sorted(jobs.begin(), jobs.end(), [](const auto& one, const auto& other) {
            return one.submit < other.submit;
        });
    const bool sensible = std::all_of(jobs.begin(), jobs.end(), [](const auto& job) {
        return job.submit.count() >= 0 && job.duration.count() >= 0 && job.gpus > 0;
    });
    if (!ordered || !sensible) {
        std::abort();
    }
    return 0;
}
