// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/sample_text.h"

#include "report/ending_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using report::Json;

/// Older samples do not show the present state.
constexpr auto k_fresh = 10s;
constexpr double k_kib_per_gib = 1024.0 * 1024.0;

double value_of(const Reading& reading, std::uint32_t scale)
{
    return static_cast<double>(reading.value().value_or(0)) / scale;
}

double value_of(const GpuSample& gpu, GpuMetric metric)
{
    return value_of(gpu[metric], row(metric).scale);
}

/// The reason that no value of the GPU is known, if none is.
std::optional<Unknown> nothing_but(const GpuSample& gpu)
{
    const bool known = std::any_of(gpu.readings.begin(), gpu.readings.end(),
                                   [](const Reading& reading) { return reading.known(); });
    return known ? std::nullopt : std::optional(gpu[GpuMetric::busy].why());
}

std::string busy_text(const GpuSample& gpu)
{
    const Reading& busy = gpu[GpuMetric::busy];
    return busy.known() ? fmt::format("{:.0f} % busy", value_of(gpu, GpuMetric::busy))
                        : fmt::format("busy unknown ({})", describe(busy.why()));
}

std::string run_text(const RunSample& run)
{
    std::vector<std::string> parts;
    if (const Reading& cpu = run[RunMetric::cpu]; cpu.known()) {
        const std::chrono::milliseconds time(*cpu.value());
        parts.push_back("CPU time " + describe(std::chrono::floor<std::chrono::seconds>(time)));
    }
    if (const Reading& memory = run[RunMetric::memory]; memory.known()) {
        parts.push_back(fmt::format("memory {:.1f} GiB",
                                    static_cast<double>(*memory.value()) / 1024 / k_kib_per_gib));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::chrono::seconds age_of(const Sample& sample, Time now)
{
    return std::max(0s, std::chrono::floor<std::chrono::seconds>(now - sample.at));
}

template <typename Metric, typename Readings>
Json::Members readings_json(const Readings& readings)
{
    Json::Members members;
    Json::Members reasons;
    for (std::size_t i = 0; i < readings.size(); ++i) {
        const MetricRow& metric = row(static_cast<Metric>(i));
        const Reading& reading = readings[i];
        if (!reading.known()) {
            reasons.emplace_back(metric.name, word(reading.why()));
        }
        members.emplace_back(metric.name, !reading.known() ? Json()
                                          : metric.scale == 1
                                              ? Json(*reading.value())
                                              : Json(value_of(reading, metric.scale)));
    }
    members.emplace_back("unknown", Json::object(std::move(reasons)));
    return members;
}

Json node_json(const NodeSample& node)
{
    Json::Elements gpus;
    for (std::size_t i = 0; node.newest && i < node.newest->gpus.size(); ++i) {
        const GpuName& name = node.header.gpus[i];
        const auto reported = [](const std::string& text) {
            return text.empty() ? Json() : Json(text);
        };
        Json::Members members = {{"uuid", reported(name.uuid)},
                                 {"model", reported(name.model)},
                                 {"pci", reported(name.pci)}};
        for (auto& member : readings_json<GpuMetric>(node.newest->gpus[i].readings)) {
            members.push_back(std::move(member));
        }
        gpus.push_back(Json::object(std::move(members)));
    }
    return Json::object(
        {{"node", node.header.node},
         {"at", node.newest ? Json(node.newest->at) : Json()},
         {"gpus", Json::array(std::move(gpus))},
         {"use", node.newest ? Json::object(readings_json<RunMetric>(node.newest->run.readings))
                             : Json()}});
}

} // namespace

std::string gpu_text(const GpuSample& gpu)
{
    if (const auto why = nothing_but(gpu)) {
        return fmt::format("unknown ({})", describe(*why));
    }
    std::vector<std::string> parts = {busy_text(gpu)};
    if (gpu[GpuMetric::memory_used].known() && gpu[GpuMetric::memory_total].known()) {
        parts.push_back(fmt::format("{:.1f} of {:.1f} GiB",
                                    value_of(gpu, GpuMetric::memory_used) / k_kib_per_gib,
                                    value_of(gpu, GpuMetric::memory_total) / k_kib_per_gib));
    }
    if (gpu[GpuMetric::power].known()) {
        parts.push_back(fmt::format("{:.0f} W", value_of(gpu, GpuMetric::power)));
    }
    if (gpu[GpuMetric::temperature].known()) {
        parts.push_back(fmt::format("{:.0f} C", value_of(gpu, GpuMetric::temperature)));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gpu_time_text(const GpuTime& time)
{
    const double all = static_cast<double>(time.allocated().count());
    const auto percent = [&](std::chrono::milliseconds part) {
        return all > 0 ? 100 * static_cast<double>(part.count()) / all : 0.0;
    };
    const auto length = time.allocated() < 1h ? fmt::format("{:.0f} GPU-seconds", all / 1000)
                                              : fmt::format("{:.2f} GPU-hours", all / 3'600'000);
    return fmt::format("{}: {:.1f} % busy, {:.1f} % idle, {:.1f} % unknown", length,
                       percent(time.busy), percent(time.idle), percent(time.unknown));
}

std::vector<std::pair<std::string, std::string>>
sample_lines(const std::vector<NodeSample>& samples, Time now)
{
    std::vector<std::pair<std::string, std::string>> lines;
    for (const NodeSample& node : samples) {
        if (!node.newest) {
            continue;
        }
        const auto age = age_of(*node.newest, now);
        const std::string when = age > k_fresh ? describe(age) + " ago: " : "";
        for (std::size_t i = 0; i < node.newest->gpus.size(); ++i) {
            lines.emplace_back(fmt::format("GPU {}", i), when + gpu_text(node.newest->gpus[i]));
        }
        const std::string use = run_text(node.newest->run);
        lines.emplace_back("measured", fmt::format("{} ago on {}{}{}", describe(age),
                                                   node.header.node, use.empty() ? "" : "; ", use));
    }
    return lines;
}

Json samples_json(const std::vector<NodeSample>& samples)
{
    Json::Elements nodes;
    for (const NodeSample& node : samples) {
        nodes.push_back(node_json(node));
    }
    return Json::array(std::move(nodes));
}

Json gpu_time_json(const GpuTime& time)
{
    const auto seconds = [](std::chrono::milliseconds part) {
        return std::chrono::floor<std::chrono::seconds>(part);
    };
    const auto all = seconds(time.allocated());
    const auto busy = seconds(time.busy), idle = seconds(time.idle);
    return Json::object({{"allocated_seconds", all},
                         {"busy_seconds", busy},
                         {"idle_seconds", idle},
                         {"unknown_seconds", all - busy - idle}});
}

} // namespace gpuq::cli
