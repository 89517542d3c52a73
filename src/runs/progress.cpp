// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/progress.h"

#include "core/layout.h"
#include <string>

namespace gpuq {

LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link,
                           const telemetry::Pattern* own)
{
    constexpr std::uint64_t k_most = 64 << 10;
    telemetry::OutputReader begin(own);
    telemetry::OutputReader end(own);
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
    return {begin.first(), end.last(), end.bar(), end.curves(), std::nullopt};
}

std::optional<telemetry::Pattern> own_pattern(const Run& run)
{
    std::optional<std::string> text;
    for (const std::string& variable : run.environment) {
        if (variable.starts_with(std::string(k_progress_variable) + "=")) {
            text = variable.substr(k_progress_variable.size() + 1);
        }
    }
    for (const auto& [name, value] : run.request.env) {
        text = name == k_progress_variable ? std::optional(value) : text;
    }
    auto pattern = telemetry::Pattern::compile(text.value_or(""));
    return pattern ? std::optional(*std::move(pattern)) : std::nullopt;
}

} // namespace gpuq
