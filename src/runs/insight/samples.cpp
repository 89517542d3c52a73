// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/samples.h"

#include "core/layout.h"
#include "runs/records/journal.h"
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
    const bool reported = std::any_of(spans.begin(), spans.end(),
                                      [&](const Span& span) { return span.link == status.link; });
    if (!reported && status.started_at) {
        spans.push_back({status.link, *status.started_at, status.ending ? status.ending->at : now});
    }
    return spans;
}

/// The sample files in a link's directory, in the order of their nodes.
std::vector<std::string> sample_files(Store& store, const RunKey& key, LinkNumber link)
{
    const std::string directory = layout::link_dir(key, link);
    std::vector<std::string> files;
    if (auto names = store.list(directory)) {
        std::sort(names->begin(), names->end());
        for (const std::string& name : *names) {
            if (name.starts_with(k_samples_prefix)) {
                files.push_back(directory + "/" + name);
            }
        }
    }
    return files;
}

/// A file for 24 GPUs, with all its rings, has 27 MB.
constexpr std::size_t k_most_bytes = 32 << 20;

/// When new checkpoints were detected.
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

RecentSamples::RecentSamples(Store& store, std::chrono::minutes span)
    : m_store(store)
    , m_span(span)
{
}

const std::vector<Sample>& RecentSamples::of(const RunKey& key, LinkNumber link,
                                             const std::vector<NodeSample>& newest)
{
    if (newest.empty() || !newest.front().newest) {
        m_samples.clear();
        return m_samples;
    }
    const NodeSample& node = newest.front();
    const std::string file = layout::link_dir(key, link) + "/" + samples_name(node.header.node);
    if (file != m_file || node.header.began != m_began) {
        m_file = file;
        m_began = node.header.began;
        m_samples.clear();
    }
    const milliseconds last = node.newest->elapsed;
    const auto is_behind = [&] { return m_samples.empty() || m_samples.back().elapsed < last; };
    if (!m_samples.empty() && is_behind()) { // one slot per second, and two for clock differences
        const auto since = std::chrono::ceil<std::chrono::seconds>(last - m_samples.back().elapsed);
        read(node, m_slot + 1, static_cast<std::size_t>(since.count()) + 2);
    }
    if (is_behind()) { // the first call, the end of the slots, or anything unexpected
        m_samples.clear();
        read(node, 0, finest_slots(node.header).count);
    }
    std::erase_if(m_samples, [&](const Sample& sample) { return sample.elapsed < last - m_span; });
    return m_samples;
}

/// Adds the samples that are newer than the known ones.
void RecentSamples::read(const NodeSample& node, std::size_t slot, std::size_t count)
{
    const FinestSlots slots = finest_slots(node.header);
    count = std::min(count, slots.count - std::min(slots.count, slot));
    const auto bytes =
        m_store.read_at(m_file, slots.offset + slot * slots.size, count * slots.size);
    const milliseconds known = m_samples.empty() ? milliseconds(-1) : m_samples.back().elapsed;
    milliseconds latest = known;
    for (std::size_t i = 0; bytes && (i + 1) * slots.size <= bytes->size(); ++i) {
        auto sample =
            sample_in(std::string_view(*bytes).substr(i * slots.size, slots.size), node.header);
        if (!sample || sample->elapsed <= known ||
            sample->elapsed < node.newest->elapsed - m_span) {
            continue;
        }
        if (sample->elapsed > latest) {
            latest = sample->elapsed;
            m_slot = slot + i;
        }
        m_samples.push_back(*std::move(sample));
    }
    std::sort(m_samples.begin(), m_samples.end(),
              [](const Sample& a, const Sample& b) { return a.elapsed < b.elapsed; });
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
