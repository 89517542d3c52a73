// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"
#include "io/event_loop.h"
#include "ports/store.h"
#include "supervisor/base/meeting_port.h"
#include "supervisor/worker/event_files.h"
#include "sweeps/early_stop.h"
#include "sweeps/taker.h"
#include "telemetry/output_reader.h"
#include "telemetry/pattern.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// A running try of a worker: its process, and the content of its log and event files.
class Slot {
public:
    /// `pattern`, if any, must outlive the object.
    Slot(sweeps::TryTaker::Taken taken, pid_t pid, const telemetry::Pattern* pattern)
        : m_taken(std::move(taken))
        , m_pid(pid)
        , m_reader(pattern)
    {
    }

    const sweeps::TryTaker::Taken& taken() const { return m_taken; }
    pid_t pid() const { return m_pid; }

    /// Keeps a rendezvous port for it alone.
    void hold_port(std::optional<MeetingPort> port) { m_port = std::move(port); }

    /// The checkpoint from which it has been continued, if any.
    void resume_from(std::optional<checkpoint::Found> saved) { m_resumed_from = std::move(saved); }
    const std::optional<checkpoint::Found>& resumed_from() const { return m_resumed_from; }
    /// The values that it had reached before, in the attempts that it continues.
    void continue_from(const sweeps::TryValues& values) { m_earlier = values; }

    /// Sends TERM, and KILL if that does not suffice in time: call it again until the end.
    void end(EventLoop::Moment now);
    /// True once end() was called.
    bool is_asked() const { return m_kill_at.has_value(); }

    /// It has been notified that it loses, and ends at `term_at`.
    void stop_early(const sweeps::EarlyStop& evidence, EventLoop::Moment term_at);
    const std::optional<sweeps::EarlyStop>& evidence() const { return m_evidence; }
    bool is_overdue(EventLoop::Moment now) const { return m_evidence && now >= m_term_at; }

    /// Its GPUQ_STOP_FILE has been created.
    void set_stop_file(bool exists) { m_has_stop_file = exists; }
    bool has_stop_file() const { return m_has_stop_file; }

    /// The bytes of earlier attempts, which are not read.
    void start_log_at(std::uint64_t offset) { m_offset = offset; }
    /// Reads the new part of the log, a limited part of it at once.
    void read_log(Store& store, const std::string& path);
    /// After the end of the program.
    void read_rest_of_log(Store& store, const std::string& path);

    /// Where else the metric may be.
    void set_event_files(std::unique_ptr<EventFiles> files) { m_event_files = std::move(files); }
    /// Reads the event files, if the log does not contain the metric.
    void read_event_files(const sweeps::Metric& metric, EventLoop::Moment now);

    /// The curve of the metric, from the log, else from the event files; null: none.
    const telemetry::Series* curve(const sweeps::Metric& metric) const;
    /// The best one is that of all attempts.
    sweeps::TryValues values(const sweeps::Metric& metric) const;
    /// Whether values that have changed are to be recorded now.
    bool is_news(const sweeps::TryValues& values, EventLoop::Moment now);

    /// Follows its curve for early stopping; unset: the sweep has no rule.
    std::optional<sweeps::Climb>& climb() { return m_climb; }
    /// When it was last compared at all its rungs.
    Time compared_at() const { return m_compared_at; }
    void set_compared_at(Time at) { m_compared_at = at; }

private:
    void read_pieces(Store& store, const std::string& path, int most);

    sweeps::TryTaker::Taken m_taken;
    pid_t m_pid;
    std::optional<MeetingPort> m_port;
    std::optional<checkpoint::Found> m_resumed_from;
    sweeps::TryValues m_earlier;
    telemetry::OutputReader m_reader;
    std::unique_ptr<EventFiles> m_event_files;
    std::uint64_t m_offset = 0;
    std::optional<EventLoop::Moment> m_kill_at;
    sweeps::TryValues m_recorded;
    EventLoop::Moment m_record_at;
    std::optional<sweeps::Climb> m_climb;
    Time m_compared_at{};
    std::optional<sweeps::EarlyStop> m_evidence;
    EventLoop::Moment m_term_at;
    bool m_has_stop_file = false;
};

} // namespace gpuq::supervisor
