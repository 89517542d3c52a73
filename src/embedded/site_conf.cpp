// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/site_conf.h"

#include "core/host_list.h"
#include "core/lower_case.h"
#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace gpuq::embedded {
namespace {

constexpr std::size_t k_most_nodes = 64;
constexpr std::uint64_t k_most_gpus = 1024;

/// Keys of slurm.conf that do not apply to another machine, and those that `up` determines.
constexpr std::string_view k_of_machines[] = {"accountingstoragebackuphost",
                                              "accountingstorageexternalhost",
                                              "accountingstoragehost",
                                              "accountingstoragepass",
                                              "accountingstorageport",
                                              "accountingstoragetype",
                                              "accountingstorageuser",
                                              "acctgathernodefreq",
                                              "acctgatherenergytype",
                                              "acctgatherfilesystemtype",
                                              "acctgatherinterconnecttype",
                                              "acctgatherprofiletype",
                                              "authalttypes",
                                              "authinfo",
                                              "authtype",
                                              "backupaddr",
                                              "backupcontroller",
                                              "bcastexclude",
                                              "burstbuffertype",
                                              "cgroupplugin",
                                              "clustername",
                                              "communicationparameters",
                                              "controladdr",
                                              "controlmachine",
                                              "credtype",
                                              "cryptotype",
                                              "epilog",
                                              "epilogslurmctld",
                                              "grestypes",
                                              "healthcheckinterval",
                                              "healthchecknodestate",
                                              "healthcheckprogram",
                                              "jobacctgathertype",
                                              "jobcomphost",
                                              "jobcomploc",
                                              "jobcompparams",
                                              "jobcomppass",
                                              "jobcompport",
                                              "jobcomptype",
                                              "jobcompuser",
                                              "jobcontainertype",
                                              "mailprog",
                                              "mpidefault",
                                              "mpiparams",
                                              "nodefeaturesplugins",
                                              "plugindir",
                                              "plugstackconfig",
                                              "powerparameters",
                                              "prefixslurm",
                                              "proctracktype",
                                              "prolog",
                                              "prologflags",
                                              "prologslurmctld",
                                              "rebootprogram",
                                              "requeueexit",
                                              "resumefailprogram",
                                              "resumeprogram",
                                              "resvprolog",
                                              "resvepilog",
                                              "routeplugin",
                                              "slurmctldaddr",
                                              "slurmctlddebug",
                                              "slurmctldhost",
                                              "slurmctldlogfile",
                                              "slurmctldpidfile",
                                              "slurmctldport",
                                              "slurmctldprimaryoffprog",
                                              "slurmctldprimaryonprog",
                                              "slurmctldsyslogdebug",
                                              "slurmddebug",
                                              "slurmdlogfile",
                                              "slurmdparameters",
                                              "slurmdpidfile",
                                              "slurmdport",
                                              "slurmdspooldir",
                                              "slurmdsyslogdebug",
                                              "slurmduser",
                                              "slurmschedlogfile",
                                              "slurmuser",
                                              "srunepilog",
                                              "srunportrange",
                                              "srunprolog",
                                              "statesavelocation",
                                              "suspendprogram",
                                              "suspendtime",
                                              "switchtype",
                                              "taskepilog",
                                              "taskplugin",
                                              "taskpluginparam",
                                              "taskprolog",
                                              "topologyparam",
                                              "topologyplugin",
                                              "unkillablestepprogram",
                                              "usepam",
                                              "x11parameters"};

/// Attributes of a node that `up` determines.
constexpr std::string_view k_of_node[] = {"bcastaddr", "gres", "nodeaddr", "nodehostname",
                                          "nodename",  "port", "state",    "reason"};
constexpr std::string_view k_cpus[] = {"cpus",           "boards", "sockets", "socketsperboard",
                                       "corespersocket", "procs"};

template <typename List>
bool has(const List& list, const std::string& word)
{
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Lines without comments, continued lines joined.
std::vector<std::string> lines_of(std::string_view text)
{
    std::vector<std::string> lines;
    std::string whole;
    for (std::string_view line : split(text, "\n")) {
        line = trimmed(line.substr(0, line.find('#')));
        const bool continues = line.ends_with('\\');
        line.remove_suffix(continues ? 1 : 0);
        whole += line;
        if (!continues && !whole.empty()) {
            lines.push_back(std::exchange(whole, {}));
        }
    }
    if (!whole.empty()) {
        lines.push_back(whole);
    }
    return lines;
}

/// `Key=value Key="a value"`, in the order of the line, keys as written.
std::vector<std::pair<std::string, std::string>> attributes_in(const std::string& line)
{
    std::vector<std::pair<std::string, std::string>> list;
    std::size_t at = 0;
    while ((at = line.find_first_not_of(" \t", at)) != std::string::npos) {
        const std::size_t sign = line.find('=', at);
        if (sign == std::string::npos) {
            break;
        }
        const bool quotes = sign + 1 < line.size() && line[sign + 1] == '"';
        const std::size_t end = quotes ? line.find('"', sign + 2) : line.find_first_of(" \t", sign);
        const std::size_t last = end == std::string::npos ? line.size() : end + (quotes ? 1 : 0);
        list.emplace_back(trimmed(std::string_view(line).substr(at, sign - at)),
                          line.substr(sign + 1, last - sign - 1));
        at = last;
    }
    return list;
}

/// `gpu:k80:2,gpu:4(S:0),nvme:1`: the GPUs. nullopt: not valid.
std::optional<std::vector<GpuDevice>> gpus_in(const std::string& gres)
{
    std::vector<GpuDevice> gpus;
    for (std::string_view item : split(gres, ",")) {
        item = item.substr(0, item.find('('));
        const auto parts = split(item, ":");
        if (parts.front() != "gpu" || parts.size() > 3) {
            continue;
        }
        const auto count =
            parts.size() == 1 ? std::optional<std::uint64_t>(1) : whole_number(parts.back());
        const bool typed = parts.size() == 3 || (parts.size() == 2 && !count);
        const std::uint64_t number = parts.size() == 2 && !count ? 1 : count.value_or(k_most_gpus);
        if (number >= k_most_gpus || (parts.size() == 3 && !count)) {
            return std::nullopt;
        }
        for (std::uint64_t i = 0; i < number; ++i) {
            gpus.push_back({typed ? std::string(parts[1]) : "", ""});
        }
    }
    return gpus;
}

class Reading {
public:
    explicit Reading(const std::string& file)
        : m_file(file)
    {
    }

    Result<void> read(const std::string& line)
    {
        const auto attributes = attributes_in(line);
        const std::string key = attributes.empty()
                                    ? lower_case(line.substr(0, line.find_first_of(" \t")))
                                    : lower_case(attributes.front().first);
        if (key.starts_with("include")) {
            return refused("include: put the lines of the included file into this one");
        }
        if (attributes.empty()) {
            return refused(fmt::format("'{}' is not a line of slurm.conf", line));
        }
        if (key == "nodename") {
            return read_nodes(attributes);
        }
        if (key == "partitionname") {
            read_partition(attributes);
        }
        if (key == "jobsubmitplugins") {
            m_conf.has_script = has(split(attributes.front().second, ","), "lua");
        }
        if (key != "frontendname" && key != "downnodes" && key != "switchname" &&
            !has(k_of_machines, key)) {
            m_conf.lines.push_back(line);
        }
        return {};
    }

    Result<SiteConf> take()
    {
        if (m_conf.nodes.empty() || !m_has_partitions) {
            return refused("no NodeName or no PartitionName line");
        }
        if (m_conf.nodes.size() > k_most_nodes) {
            return refused(fmt::format("{} nodes; one machine can simulate at most {}",
                                       m_conf.nodes.size(), k_most_nodes));
        }
        m_conf.qos.assign(m_qos.begin(), m_qos.end());
        return std::move(m_conf);
    }

private:
    Error refused(const std::string& text) const
    {
        return fail(Error::Kind::usage, fmt::format("{}: {}", m_file, text));
    }

    Result<void> read_nodes(const std::vector<std::pair<std::string, std::string>>& attributes)
    {
        const std::string& names = attributes.front().second;
        auto node = names == "DEFAULT" ? std::map<std::string, std::string>() : m_defaults;
        for (const auto& [name, value] : attributes) {
            node[lower_case(name)] = fmt::format("{}={}", name, value);
        }
        if (names == "DEFAULT") {
            m_defaults.merge(node);
            m_defaults.erase("nodename");
            return {};
        }
        const auto hosts = expand_hosts(names);
        if (!hosts) {
            return refused(hosts.error().text);
        }
        const auto gres = node.find("gres");
        const auto gpus = gres == node.end() ? std::optional(std::vector<GpuDevice>())
                                             : gpus_in(gres->second.substr(5));
        if (!gpus) {
            return refused(fmt::format("{} of node {}", gres->second, names));
        }
        NamedNode one{"", *gpus, 1, ""};
        bool cpus = false;
        for (const auto& [key, text] : node) {
            if (!has(k_of_node, key)) {
                one.attributes += (one.attributes.empty() ? "" : " ") + text;
            }
            cpus = cpus || has(k_cpus, key);
        }
        one.attributes += cpus ? "" : " CPUs=16";
        one.attributes += node.contains("realmemory") ? "" : " RealMemory=32000";
        for (const std::string& host : *hosts) {
            one.name = host;
            m_conf.nodes.push_back(one);
        }
        return {};
    }

    void read_partition(const std::vector<std::pair<std::string, std::string>>& attributes)
    {
        m_has_partitions = true;
        for (const auto& [name, value] : attributes) {
            const std::string key = lower_case(name);
            if (key == "qos" || key == "allowqos" || key == "denyqos") {
                for (const std::string_view qos : split(value, ",")) {
                    if (!qos.empty() && lower_case(qos) != "all") {
                        m_qos.emplace(qos);
                    }
                }
            }
        }
    }

    const std::string& m_file;
    SiteConf m_conf;
    std::map<std::string, std::string> m_defaults; ///< of nodes, by key in lower case
    std::set<std::string> m_qos;
    bool m_has_partitions = false;
};

} // namespace

Result<SiteConf> site_conf_in(std::string_view text, const std::string& file)
{
    Reading reading(file);
    for (const std::string& line : lines_of(text)) {
        TRY(reading.read(line));
    }
    return reading.take();
}

void use_conf(ClusterSpec& spec, const SiteConf& conf, const std::vector<GpuDevice>& stand_ins)
{
    spec.named = conf.nodes;
    for (NamedNode& node : spec.named) {
        for (std::size_t i = 0; i < node.gpus.size(); ++i) {
            node.gpus[i].file = stand_ins.at(i).file;
        }
    }
    spec.nodes = static_cast<int>(spec.named.size());
    spec.conf_lines = conf.lines;
    spec.conf_qos = conf.qos;
}

int most_gpus(const SiteConf& conf)
{
    std::size_t most = 0;
    for (const NamedNode& node : conf.nodes) {
        most = std::max(most, node.gpus.size());
    }
    return static_cast<int>(most);
}

} // namespace gpuq::embedded
