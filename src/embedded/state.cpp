// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/state.h"

#include "core/number.h"

#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <utility>

namespace gpuq::embedded {
namespace {

constexpr std::string_view k_head = "gpuq-cluster 1";

template <typename T>
bool read_number(std::string_view text, T& number)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

/// Removes and returns the first word of `text`.
std::string_view next_word(std::string_view& text)
{
    const std::size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    return word;
}

bool read_gpu(std::string_view value, State& state)
{
    GpuDevice gpu;
    gpu.file = next_word(value);
    gpu.model = value;
    state.spec.gpus.push_back(gpu);
    return !gpu.file.empty();
}

bool read_node(std::string_view value, State& state)
{
    state.spec.named.push_back({std::string(value), {}, 1, ""});
    return !value.empty();
}

bool read_node_gpu(std::string_view value, State& state)
{
    if (state.spec.named.empty()) {
        return false;
    }
    GpuDevice gpu;
    gpu.file = next_word(value);
    gpu.model = value;
    state.spec.named.back().gpus.push_back(gpu);
    return !gpu.file.empty();
}

bool read_node_threads(std::string_view value, State& state)
{
    const auto threads = whole_number(value);
    if (state.spec.named.empty() || !threads || *threads < 1 || *threads > 1024) {
        return false;
    }
    state.spec.named.back().threads_per_core = static_cast<int>(*threads);
    return true;
}

bool read_node_attributes(std::string_view value, State& state)
{
    if (state.spec.named.empty()) {
        return false;
    }
    state.spec.named.back().attributes = value;
    return true;
}

bool read_node_shards(std::string_view value, State& state)
{
    return !state.spec.named.empty() && read_number(value, state.spec.named.back().shards);
}

bool read_daemon(std::string_view value, State& state)
{
    Daemon daemon;
    daemon.name = next_word(value);
    const bool fine = read_number(next_word(value), daemon.process.pid) &&
                      read_number(value, daemon.process.start_time);
    state.daemons.push_back(daemon);
    return fine;
}

bool read_node_port(std::string_view value, State& state)
{
    return read_number(value, state.ports.nodes.emplace_back());
}

bool read_flag(std::string_view value, bool& flag)
{
    flag = value == "yes";
    return flag || value == "no";
}

/// How the value of each key is parsed. Text values take the rest of the line.
struct Key {
    std::string_view name;
    bool (*read)(std::string_view value, State& state);
};

constexpr auto k_text = [](std::string_view value, std::string& text) {
    text = value;
    return true;
};

const Key k_keys[] = {
    {"name", [](auto value, auto& state) { return k_text(value, state.spec.name); }},
    {"node-prefix", [](auto value, auto& state) { return k_text(value, state.spec.node_prefix); }},
    {"nodes", [](auto value, auto& state) { return read_number(value, state.spec.nodes); }},
    {"gpu", read_gpu},
    {"stand-ins", [](auto value, auto& state) { return read_flag(value, state.spec.stand_ins); }},
    {"shards", [](auto value, auto& state) { return read_number(value, state.spec.shards); }},
    {"cpus", [](auto value, auto& state) { return read_number(value, state.spec.cpus); }},
    {"topology", [](auto value, auto& state) { return k_text(value, state.spec.topology); }},
    {"memory", [](auto value, auto& state) { return read_number(value, state.spec.memory_mib); }},
    {"cgroups",
     [](auto value, auto& state) {
         bool flag = false;
         const bool fine = read_flag(value, flag);
         state.spec.confinement = flag ? Confinement::cgroups : Confinement::parents;
         return fine;
     }},
    {"cgroup-plugin",
     [](auto value, auto& state) { return k_text(value, state.spec.cgroup_plugin); }},
    {"slurm-release",
     [](auto value, auto& state) { return k_text(value, state.spec.slurm_release); }},
    {"user", [](auto value, auto& state) { return k_text(value, state.spec.user); }},
    {"slurm-conf",
     [](auto value, auto& state) { return k_text(value, state.spec.extra_lines.emplace_back()); }},
    {"node", read_node},
    {"node-gpu", read_node_gpu},
    {"node-threads", read_node_threads},
    {"node-attributes", read_node_attributes},
    {"conf-line",
     [](auto value, auto& state) { return k_text(value, state.spec.conf_lines.emplace_back()); }},
    {"conf-qos",
     [](auto value, auto& state) { return k_text(value, state.spec.conf_qos.emplace_back()); }},
    {"node-shards", read_node_shards},
    {"policy", [](auto value, auto& state) { return read_flag(value, state.spec.policy); }},
    {"accounting", [](auto value, auto& state) { return read_flag(value, state.spec.accounting); }},
    {"accounting-failure",
     [](auto value, auto& state) { return k_text(value, state.accounting_failure); }},
    {"controller-port",
     [](auto value, auto& state) { return read_number(value, state.ports.controller); }},
    {"accounting-port",
     [](auto value, auto& state) { return read_number(value, state.ports.accounting); }},
    {"node-port", read_node_port},
    {"run", [](auto value, auto& state) { return k_text(value, state.run); }},
    {"boot", [](auto value, auto& state) { return k_text(value, state.boot); }},
    {"started", [](auto value, auto& state) { return read_number(value, state.started_at); }},
    {"up", [](auto value, auto& state) { return read_flag(value, state.up); }},
    {"daemon", read_daemon},
};

bool read_line(std::string_view line, State& state)
{
    const std::string_view name = next_word(line);
    for (const Key& key : k_keys) {
        if (key.name == name) {
            return key.read(line, state);
        }
    }
    return false;
}

} // namespace

std::string to_text(const State& state)
{
    const ClusterSpec& spec = state.spec;
    std::string text = fmt::format("{}\n", k_head);
    const auto add = [&text](std::string_view key, const auto& value) {
        text += fmt::format("{} {}\n", key, value);
    };
    const auto flag = [](bool value) { return value ? "yes" : "no"; };
    const auto gpu_text = [](const GpuDevice& gpu) {
        return gpu.model.empty() ? gpu.file : gpu.file + " " + gpu.model;
    };
    add("name", spec.name);
    add("node-prefix", spec.node_prefix);
    add("nodes", spec.nodes);
    for (const GpuDevice& gpu : spec.gpus) {
        add("gpu", gpu_text(gpu));
    }
    add("stand-ins", flag(spec.stand_ins));
    if (spec.shards > 0) {
        add("shards", spec.shards);
    }
    add("cpus", spec.cpus);
    add("topology", spec.topology);
    add("memory", spec.memory_mib);
    add("cgroups", flag(spec.confinement == Confinement::cgroups));
    if (!spec.cgroup_plugin.empty()) {
        add("cgroup-plugin", spec.cgroup_plugin);
    }
    if (!spec.slurm_release.empty()) {
        add("slurm-release", spec.slurm_release);
    }
    add("user", spec.user);
    for (const std::string& line : spec.extra_lines) {
        add("slurm-conf", line);
    }
    for (const NamedNode& node : spec.named) {
        add("node", node.name);
        for (const GpuDevice& gpu : node.gpus) {
            add("node-gpu", gpu_text(gpu));
        }
        add("node-threads", node.threads_per_core);
        if (!node.attributes.empty()) {
            add("node-attributes", node.attributes);
        }
        if (node.shards > 0) {
            add("node-shards", node.shards);
        }
    }
    for (const std::string& line : spec.conf_lines) {
        add("conf-line", line);
    }
    for (const std::string& qos : spec.conf_qos) {
        add("conf-qos", qos);
    }
    if (spec.policy) {
        add("policy", flag(true));
    }
    if (!spec.accounting) {
        add("accounting", flag(false));
    }
    if (!state.accounting_failure.empty()) {
        add("accounting-failure", state.accounting_failure);
    }
    add("controller-port", state.ports.controller);
    add("accounting-port", state.ports.accounting);
    for (const int port : state.ports.nodes) {
        add("node-port", port);
    }
    add("run", state.run);
    add("boot", state.boot);
    add("started", state.started_at);
    add("up", flag(state.up));
    for (const Daemon& daemon : state.daemons) {
        add("daemon",
            fmt::format("{} {} {}", daemon.name, daemon.process.pid, daemon.process.start_time));
    }
    return text;
}

Result<State> parse_state(std::string_view text)
{
    State state;
    int number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        ++number;
        if (number == 1 ? line != k_head : !read_line(line, state)) {
            return fail(Error::Kind::usage, fmt::format("invalid line {}", number));
        }
    }
    if (number == 0) {
        return fail(Error::Kind::usage, "the file is empty");
    }
    return state;
}

} // namespace gpuq::embedded
