// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/samples.h"

#include "core/layout.h"
#include "runs/journal.h"
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

/// Files of samples in the folder of a link, in the order of their nodes.
std::vector<std::string> sample_files(Store& store, const RunKey& key, LinkNumber link)
{
    const std::string folder = layout::link_dir(key, link);
    std::vector<std::string> files;
    if (auto names = store.list(folder)) {
        std::sort(names->begin(), names->end());
        for (const std::string& name : *names) {
            if (name.starts_with(k_samples_prefix)) {
                files.push_back(folder + "/" + name);
            }
        }
    }
    return files;
}

/// A file of 24 GPUs, with all its rings, has 27 MB.
constexpr std::size_t k_most_bytes = 32 << 20;

/// When checkpoints were seen to be there.
std::vector<Time> saves_of(Store& store, const RunKey& key, LinkNumber link)
{
    std::vector<Time> saves;
    if (const auto journal = store.read(layout::journal(key, link))) {
        for (const Event& event : parse_journal(*journal)) {
            if (event.kind == Event::Kind::checkpoint) {
                saves.push_back(event.at);
            }
        }
    }
    return saves;
}

} // namespace

std::vector<NodeSample> newest_samples(Store& store, const RunKey& key, LinkNumber link)
{
    std::vector<NodeSample> samples;
    for (const std::string& file : sample_files(store, key, link)) {
        const auto bytes = store.read_at(file, 0, k_newest_size);
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
    const auto files = sample_files(store, key, link);
    if (files.empty()) {
        return {};
    }
    const auto bytes = store.read_at(files.front(), 0, k_most_bytes);
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

std::optional<telemetry::Profile> profile_so_far(Store& store, const RunStatus& status, Time now)
{
    const std::vector<Span> spans = spans_of(status, now);
    if (!status.run || spans.empty()) {
        return std::nullopt;
    }
    std::vector<telemetry::ProfiledLink> links;
    for (const Span& span : spans) {
        links.push_back({span.link,
                         span.from,
                         std::max(span.from, span.to),
                         saves_of(store, status.key, span.link),
                         {}});
    }
    const Request& request = status.run->request;
    telemetry::Profiler profiler(std::move(links), request.gpus.count * request.nodes);
    for (std::size_t i = 0; i < spans.size(); ++i) {
        for (const std::string& file : sample_files(store, status.key, spans[i].link)) {
            const auto bytes = store.read_at(file, 0, k_most_bytes);
            const auto header = bytes ? sample_header(*bytes) : Result<SampleHeader>(bytes.error());
            if (header) {
                profiler.add(i, *header, all_samples(*bytes));
            }
        }
    }
    return profiler.take();
}

} // namespace gpuq
