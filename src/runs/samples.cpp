// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/samples.h"

#include "core/layout.h"
#include "telemetry/ledger.h"

#include <algorithm>

namespace gpuq {
namespace {

using std::chrono::milliseconds;

struct Span {
    LinkNumber link;
    Time from, to;
};

std::vector<Span> spans_of(const RunStatus& status, Time now)
{
    std::vector<Span> spans;
    for (const LinkPast& link : status.links) {
        if (link.started_at) {
            spans.push_back({link.link, *link.started_at, link.ending ? link.ending->at : now});
        }
    }
    const bool told = std::any_of(spans.begin(), spans.end(),
                                  [&](const Span& span) { return span.link == status.link; });
    if (!told && status.started_at) {
        spans.push_back({status.link, *status.started_at, status.ending ? status.ending->at : now});
    }
    return spans;
}

} // namespace

std::vector<NodeSample> newest_samples(Store& store, const RunKey& key, LinkNumber link)
{
    const std::string folder = layout::link_dir(key, link);
    auto names = store.list(folder);
    std::vector<NodeSample> samples;
    if (!names) {
        return samples;
    }
    std::sort(names->begin(), names->end());
    for (const std::string& name : *names) {
        if (!name.starts_with(k_samples_prefix)) {
            continue;
        }
        const auto bytes = store.read_at(folder + "/" + name, 0, k_newest_size);
        auto header = bytes ? sample_header(*bytes) : Result<SampleHeader>(bytes.error());
        if (header) {
            samples.push_back({*std::move(header), newest_sample(*bytes)});
        }
    }
    return samples;
}

std::vector<Sample> recent_samples(Store& store, const RunKey& key, LinkNumber link,
                                   std::chrono::minutes span)
{
    constexpr std::size_t k_most_bytes = 16 << 20;
    const std::string folder = layout::link_dir(key, link);
    auto names = store.list(folder);
    if (!names) {
        return {};
    }
    std::sort(names->begin(), names->end());
    const auto name = std::find_if(names->begin(), names->end(), [](const std::string& one) {
        return one.starts_with(k_samples_prefix);
    });
    if (name == names->end()) {
        return {};
    }
    const auto bytes = store.read_at(folder + "/" + *name, 0, k_most_bytes);
    auto samples = bytes ? all_samples(*bytes) : std::vector<Sample>{};
    if (!samples.empty()) {
        const Time from = samples.back().at - span;
        std::erase_if(samples, [&](const Sample& sample) { return sample.at < from; });
    }
    return samples;
}

GpuTime gpu_time_so_far(Store& store, const RunStatus& status, Time now)
{
    GpuTime sum;
    if (!status.run) {
        return sum;
    }
    const Request& request = status.run->request;
    for (const Span& span : spans_of(status, now)) {
        GpuTime measured;
        for (const NodeSample& node : newest_samples(store, status.key, span.link)) {
            measured += node.newest ? node.newest->gpu_time : GpuTime{};
        }
        const auto length = std::chrono::floor<milliseconds>(span.to - span.from);
        sum += of_allocated(measured,
                            std::max(length, milliseconds(0)) * request.gpus.count * request.nodes);
    }
    return sum;
}

} // namespace gpuq
