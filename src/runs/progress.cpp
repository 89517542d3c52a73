// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/progress.h"

#include "core/layout.h"
#include "telemetry/output_reader.h"

#include <string>

namespace gpuq {

LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link)
{
    constexpr std::uint64_t k_most = 64 << 10;
    telemetry::OutputReader begin;
    telemetry::OutputReader end;
    for (const Stream stream : {Stream::out, Stream::err}) {
        const std::string log = layout::log(key, link, stream);
        const auto size = store.size(log);
        const std::uint64_t from = size && *size > k_most ? *size - k_most : 0;
        const auto head = store.read_at(log, 0, k_most);
        const auto tail = store.read_at(log, from, k_most);
        begin.feed(head ? *head : "");
        begin.end_line();
        end.feed(tail ? *tail : "");
        end.end_line();
    }
    return {begin.first(), end.last()};
}

} // namespace gpuq
