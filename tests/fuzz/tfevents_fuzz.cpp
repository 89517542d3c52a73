// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/event_file.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace gpuq;

namespace {

void check(bool holds)
{
    if (!holds) {
        std::abort();
    }
}

struct Reading {
    telemetry::EventFile file;
    telemetry::Curves curves;
};

} // namespace

/// Any bytes: reading in one piece and in two pieces, cut anywhere, gives the same curves, and no
/// more is consumed than was fed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size); // bytes are characters
    Reading whole;
    whole.file.feed(bytes, whole.curves);
    check(whole.file.offset() <= size);
    const std::size_t cut = size == 0 ? 0 : data[size - 1] * size / 256;
    Reading parts;
    parts.file.feed(bytes.substr(0, cut), parts.curves);
    parts.file.feed(bytes.substr(cut), parts.curves);
    check(parts.file.offset() == whole.file.offset());
    check(parts.file.records() == whole.file.records());
    check(parts.file.bad_records() == whole.file.bad_records());
    check(parts.file.damaged_bytes() == whole.file.damaged_bytes());
    check(parts.curves.by_tag().size() == whole.curves.by_tag().size());
    for (const auto& [tag, series] : whole.curves.by_tag()) {
        const telemetry::Series* const other = parts.curves.find(tag);
        check(other != nullptr && other->points() == series.points());
        check(series.buckets().size() <= telemetry::Series::k_most_buckets);
    }
    Reading end; // the skipped part may be anything
    end.file.feed(bytes.substr(0, cut / 2), end.curves);
    end.file.skip(cut - cut / 2);
    end.file.feed(bytes.substr(cut), end.curves);
    check(end.file.offset() <= size);
    return 0;
}
