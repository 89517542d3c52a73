// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/node_check.h"

#include "core/key.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr auto k_step_patience = 25s;
constexpr auto k_file_patience = 3s;
constexpr auto k_file_poll = 100ms;

/// Runs on the node. $1: the file that gpuq has written, $2: its content, $3: the supervisor, $4:
/// the queue. Prints the lines that node_view_in parses.
constexpr const char* k_check_script = R"sh(
echo "host $(uname -n)"
echo "clock $(date +%s)"
[ "$(cat "$1" 2>/dev/null)" = "$2" ] && echo "folder yes"
(umask 077; printf %s "$2" > "$1.back") 2>/dev/null
[ -x "$3" ] && echo "supervisor yes"
if ! command -v sbatch >/dev/null; then echo "submit unknown"
elif timeout 10 sbatch --test-only -Q -p "$4" -t 1 -n 1 --wrap=true >/dev/null 2>&1
then echo "submit yes"; else echo "submit no"; fi
)sh";

/// Everything up to the end of the stream or the time limit.
std::string program_arguments(int fd)
{
    const auto end = Steady::now() + k_step_patience;
    std::string printed;
    std::array<char, 4096> bytes{};
    while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Steady::now()).count();
        pollfd wait{fd, POLLIN, 0};
        const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
        const ssize_t size = ready > 0 ? ::read(fd, bytes.data(), bytes.size()) : 0;
        if (size > 0) {
            printed.append(bytes.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            return printed;
        }
    }
}

/// A network file system may show a file of another host with a delay.
bool comes_back(Store& store, const std::string& file, const std::string& content)
{
    const auto end = Steady::now() + k_file_patience;
    while (Steady::now() < end) {
        if (const auto text = store.read(file); text && *text == content) {
            return true;
        }
        ::poll(nullptr, 0, static_cast<int>(k_file_poll.count()));
    }
    return false;
}

const Partition* default_queue(const std::vector<Partition>& queues)
{
    const Partition* chosen = nullptr;
    for (const Partition& queue : queues) {
        if (queue.up && (chosen == nullptr || (queue.is_default && !chosen->is_default))) {
            chosen = &queue;
        }
    }
    return chosen;
}

/// One check of a node; the destructor removes its files and ends its job.
class NodeCheck {
public:
    NodeCheck(Services& services, Store& store, Cluster& cluster)
        : m_services(services)
        , m_store(store)
        , m_cluster(cluster)
        , m_file(fmt::format("probe-{}",
                             RunKey::make(services.clock().now(), services.random()).text()))
    {
    }
    NodeCheck(const NodeCheck&) = delete;
    NodeCheck& operator=(const NodeCheck&) = delete;
    ~NodeCheck()
    {
        (void)m_store.remove(m_file);
        (void)m_store.remove(m_file + ".back");
        if (m_job && !m_cluster.complete(*m_job, 0)) {
            (void)m_cluster.cancel(*m_job);
        }
    }

    Result<std::vector<Finding>> run_checks()
    {
        TRY_ASSIGN(const auto queues, m_cluster.partitions());
        const Partition* queue = default_queue(queues);
        if (queue == nullptr) {
            return fail(Error::Kind::denied, "no queue accepts jobs");
        }
        TRY(m_store.write(m_file, m_file));
        const std::string supervisor =
            m_services.supervisor().has_value() ? *m_services.supervisor() : "";
        const Time before = m_services.clock().now();
        const std::string path = m_store.root() + "/" + m_file;
        TRY_ASSIGN(const auto started,
                   m_cluster.start_now(spec(queue->name),
                                       {"/bin/sh", "-c", k_check_script, "gpuq-doctor", path,
                                        m_file, supervisor, queue->name},
                                       /*with_input=*/false, {}));
        m_job = started.job;
        const std::string printed = program_arguments(started.process.output);
        NodeView view = node_view_in(printed);
        if (view.host.empty()) {
            return fail(Error::Kind::unreachable,
                        fmt::format("the step of job {} printed nothing", started.job.value));
        }
        view.writes_directory =
            view.sees_directory && comes_back(m_store, m_file + ".back", m_file);
        return assess_node(view, m_store.root(), supervisor,
                           {"", 0ms, before, m_services.clock().now()});
    }

private:
    static JobSpec spec(const std::string& queue)
    {
        JobSpec spec;
        spec.name = "gpuq-doctor";
        spec.partition = queue;
        spec.comment = "gpuq-doctor";
        spec.work_dir = "/tmp";
        spec.walltime = 1min;
        return spec;
    }

    Services& m_services;
    Store& m_store;
    Cluster& m_cluster;
    std::string m_file;
    std::optional<JobId> m_job;
};

Result<std::vector<Finding>> ask(Services& services)
{
    TRY_ASSIGN(Store* const store, services.store());
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    return NodeCheck(services, *store, *cluster).run_checks();
}

} // namespace

std::vector<Finding> query_node(Services& services)
{
    const auto findings = ask(services);
    if (findings) {
        return *findings;
    }
    const bool is_busy = findings.error().kind == Error::Kind::busy;
    std::vector<Finding> unknown;
    for (const char* check :
         {"nodes-see-folder", "nodes-see-supervisor", "nodes-submit", "node-clock"}) {
        unknown.push_back({check, Finding::Level::unknown,
                           "no node could be checked: " + findings.error().text,
                           is_busy ? "try again when a node has a free core" : ""});
    }
    return unknown;
}

} // namespace gpuq::cli
