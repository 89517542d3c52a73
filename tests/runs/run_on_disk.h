// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "runs/records/heartbeat.h"
#include "runs/records/journal.h"
#include "runs/records/record.h"

#include <string>

namespace gpuq::fakes {

inline Run some_run(Time made_at, const std::string& name, unsigned char number = 0)
{
    Run run{RunKey::make(made_at, {0xab, number, 3, 4, 5, 6, 7, 8})};
    run.cluster = "lab";
    run.user = "ada";
    run.host = "login1";
    run.submitted_at = made_at;
    run.request.name = name;
    run.request.program = {"/bin/train"};
    run.request.work_dir = "/home/ada";
    run.request.queue = "gpu";
    run.request.walltime = std::chrono::minutes(120);
    return run;
}

/// Writes a run's files as the client, the supervisor and Slurm's jobs would.
class RunOnDisk {
public:
    RunOnDisk(Store& store, Run run)
        : m_store(store)
        , m_run(std::move(run))
    {
        put(layout::run_json(key()), to_json(m_run));
        put(layout::active(key()), "");
    }

    const RunKey& key() const { return m_run.key; }
    const Run& run() const { return m_run; }

    RunOnDisk& submitted(JobId job, bool batch = true)
    {
        put(layout::job_json(key(), k_first),
            to_json(LinkJob{m_run.cluster, job, m_run.submitted_at, batch}));
        put(layout::job_index(m_run.cluster, job), key().text() + "\n");
        return *this;
    }

    RunOnDisk& event(const Event& event)
    {
        m_journal += to_line(event);
        put(layout::journal(key(), k_first), m_journal);
        return *this;
    }

    RunOnDisk& started(JobId job, Time at)
    {
        Event event;
        event.kind = Event::Kind::supervisor_started;
        event.at = at;
        event.job = job.value;
        event.host = "node1";
        for (const Stream stream : {Stream::out, Stream::err}) {
            put(layout::log(key(), k_first, stream), "");
        }
        return this->event(event).beat(job, at);
    }

    RunOnDisk& beat(JobId job, Time at, std::uint64_t out = 0, std::uint64_t err = 0)
    {
        put(layout::heartbeat(key(), k_first), to_line(Heartbeat{at, job, 99, out, err}));
        return *this;
    }

    RunOnDisk& ended(const Ending& ending)
    {
        Event event;
        event.kind = Event::Kind::ended;
        event.at = ending.at;
        event.status = ending.status;
        event.cause = ending.cause;
        event.detail = ending.detail;
        return this->event(event);
    }

    RunOnDisk& stop_asked(const std::string& by, Time at)
    {
        put(layout::inbox(key()) + "/" + layout::k_stop_request, to_json(StopRequest{by, at}));
        return *this;
    }

private:
    static constexpr LinkNumber k_first{1};

    void put(const std::string& path, const std::string& content)
    {
        if (!m_store.write(path, content)) {
            std::abort();
        }
    }

    Store& m_store;
    Run m_run;
    std::string m_journal;
};

} // namespace gpuq::fakes
