// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/output_reader.h"
#include "telemetry/training_files.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace gpuq;

/// Any output, metrics.csv or trainer_state.json and any user-defined pattern (the first line) can
/// be read; output gives the same result in one piece and byte by byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size); // bytes are characters
    telemetry::OutputReader whole;
    telemetry::OutputReader parts;
    whole.feed(bytes);
    for (const char byte : bytes) {
        parts.feed({&byte, 1});
    }
    whole.end_line();
    parts.end_line();
    if (whole.first() != parts.first() || whole.last() != parts.last() ||
        whole.bar() != parts.bar()) {
        std::abort();
    }
    telemetry::Curves curves;
    telemetry::read_metrics_csv(bytes, curves);
    telemetry::read_trainer_state(bytes);
    const auto end = bytes.find('\n');
    const auto pattern = telemetry::Pattern::compile(bytes.substr(0, end));
    if (pattern && end != bytes.npos) {
        telemetry::OutputReader own(&*pattern);
        own.feed(bytes.substr(end));
        own.end_line();
    }
    return 0;
}
