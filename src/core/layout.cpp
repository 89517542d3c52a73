// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/layout.h"

#include <fmt/format.h>

namespace gpuq::layout {
namespace {

std::string in_link(const RunKey& key, LinkNumber link, std::string_view name)
{
    return fmt::format("{}/{}", link_dir(key, link), name);
}

std::string file_name_of(const std::string& text)
{
    std::string name;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_';
        name += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    return name.empty() ? "%" : name;
}

} // namespace

std::string runs()
{
    return "runs";
}

std::string run_dir(const RunKey& key)
{
    return fmt::format("runs/{}", key.text());
}

std::string run_json(const RunKey& key)
{
    return run_dir(key) + "/run.json";
}

std::string walltime_json(const RunKey& key)
{
    return run_dir(key) + "/walltime.json";
}

std::string snapshot(const RunKey& key)
{
    return run_dir(key) + "/snapshot.json";
}

std::string inbox(const RunKey& key)
{
    return run_dir(key) + "/inbox";
}

std::string ended_json(const RunKey& key)
{
    return run_dir(key) + "/ended.json";
}

std::string shown_json(const RunKey& key)
{
    return run_dir(key) + "/shown.json";
}

std::string link_dir(const RunKey& key, LinkNumber link)
{
    return fmt::format("{}/link-{}", run_dir(key), link.value);
}

std::string supervisor_log(const RunKey& key, LinkNumber link)
{
    return fmt::format("{}/{}", link_dir(key, link), k_supervisor_log);
}

std::string slurm_log(const RunKey& key, LinkNumber link)
{
    return link_dir(key, link) + "/slurm.log";
}

std::string job_json(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "job.json");
}

std::string claim(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "claim");
}

std::string log(const RunKey& key, LinkNumber link, Stream stream)
{
    return in_link(key, link, stream == Stream::out ? "out.log" : "err.log");
}

std::string order(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "order");
}

std::string times(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, k_times);
}

std::string journal(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "journal.jsonl");
}

std::string heartbeat(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "heartbeat");
}

std::string stop_file(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "stop");
}

std::string save_file(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "save");
}

std::string extended_file(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "extended");
}

std::string deadline_file(const RunKey& key, LinkNumber link)
{
    return in_link(key, link, "deadline");
}

std::string checkpoints(const RunKey& key)
{
    return run_dir(key) + "/checkpoints";
}

std::string kept(const RunKey& key)
{
    return run_dir(key) + "/kept";
}

std::string connect_dir(const RunKey& key)
{
    return run_dir(key) + "/connect";
}

std::string connect_file(const RunKey& key, std::string_view name)
{
    return fmt::format("{}/{}", connect_dir(key), name);
}

std::string sweeps()
{
    return "sweeps";
}

std::string sweep_dir(const RunKey& key)
{
    return fmt::format("sweeps/{}", key.text());
}

std::string sweep_json(const RunKey& key)
{
    return sweep_dir(key) + "/sweep.json";
}

std::string sweep_snapshot(const RunKey& key)
{
    return sweep_dir(key) + "/snapshot.json";
}

std::string sweep_tries(const RunKey& key, int batch)
{
    return fmt::format("{}/tries-{}.jsonl", sweep_dir(key), batch);
}

std::string sweep_retries(const RunKey& key, int batch)
{
    return fmt::format("{}/retries-{}", sweep_dir(key), batch);
}

std::string sweep_stop(const RunKey& key)
{
    return sweep_dir(key) + "/stop";
}

std::string sweep_closed(const RunKey& key)
{
    return sweep_dir(key) + "/closed";
}

std::string sweep_lock(const RunKey& key)
{
    return sweep_dir(key) + "/lock";
}

std::string sweep_totals(const RunKey& key)
{
    return sweep_dir(key) + "/totals.json";
}

std::string sweep_grows(const RunKey& key)
{
    return sweep_dir(key) + "/grows";
}

std::string sweep_added(const RunKey& key, const RunKey& worker)
{
    return fmt::format("{}/added/{}", sweep_dir(key), worker.text());
}

std::string sweep_runs(const RunKey& key)
{
    return sweep_dir(key) + "/runs";
}

std::string sweep_run(const RunKey& key, const RunKey& worker)
{
    return fmt::format("{}/{}", sweep_runs(key), worker.text());
}

std::string sweep_workers(const RunKey& key)
{
    return sweep_dir(key) + "/workers";
}

std::string sweep_worker(const RunKey& key, const RunKey& worker)
{
    return fmt::format("{}/{}", sweep_workers(key), worker.text());
}

std::string try_dir(const RunKey& key, std::size_t number)
{
    return fmt::format("{}/tries/{}", sweep_dir(key), number);
}

std::string try_claim(const RunKey& key, std::size_t number, int attempt)
{
    return fmt::format("{}/claim-{}", try_dir(key, number), attempt);
}

std::string try_log(const RunKey& key, std::size_t number)
{
    return try_dir(key, number) + "/out.log";
}

std::string try_stop(const RunKey& key, std::size_t number)
{
    return try_dir(key, number) + "/stop";
}

std::string try_leave(const RunKey& key, std::size_t number)
{
    return try_dir(key, number) + "/leave";
}

std::string budget_limit(const std::string& name)
{
    return fmt::format("budgets/{}/limit", name);
}

std::string budget_members(const std::string& name)
{
    return fmt::format("budgets/{}/members", name);
}

std::string budget_member(const std::string& name, const RunKey& key)
{
    return fmt::format("budgets/{}/members/{}", name, key.text());
}

std::string active_sweeps()
{
    return "index/sweeps";
}

std::string active_sweep(const RunKey& key)
{
    return fmt::format("index/sweeps/{}", key.text());
}

std::string secret()
{
    return "secret";
}

std::string notebooks()
{
    return "index/notebooks";
}

std::string active()
{
    return "index/active";
}

std::string active(const RunKey& key)
{
    return fmt::format("index/active/{}", key.text());
}

std::string job_index(const std::string& cluster, JobId job)
{
    return job_index_in(file_name_of(cluster), job);
}

std::string queues(const std::string& cluster)
{
    return fmt::format("cache/queues/{}", file_name_of(cluster));
}

std::string overview(const std::string& cluster)
{
    return fmt::format("cache/overview/{}", file_name_of(cluster));
}

std::string shared_overview(const std::string& directory, const std::string& cluster)
{
    return fmt::format("{}/{}.overview", directory, file_name_of(cluster));
}

std::string tuning(std::uint64_t problem)
{
    return fmt::format("{}/{:016x}", tunings(), problem);
}

std::string tunings()
{
    return "cache/tuning";
}

std::string job_indexes()
{
    return "index/jobs";
}

std::string job_index_in(const std::string& directory, JobId job)
{
    return fmt::format("{}/{}/{}", job_indexes(), directory, job.value);
}

std::string socket(unsigned uid, const RunKey& key, LinkNumber link)
{
    return fmt::format("gpuq-{}/{}.{}", uid, key.text(), link.value);
}

} // namespace gpuq::layout
