// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/find.h"
#include "ports/store.h"
#include "supervisor/base/program.h"
#include "supervisor/worker/event_files.h"
#include "supervisor/worker/worker.h"
#include "sweeps/records.h"
#include "sweeps/taker.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::supervisor {

/// Starts the programs of the tries that a worker has taken, and finds their checkpoints.
class TryPrograms {
public:
    /// All must outlive the object.
    TryPrograms(Store& store, const WorkerPlan& plan, const sweeps::Sweep& sweep)
        : m_store(store)
        , m_plan(plan)
        , m_sweep(sweep)
    {
    }

    struct Started {
        pid_t pid = -1;
        std::uint64_t log_size = 0; ///< bytes of earlier attempts
    };
    /// Starts a child in a session of its own, whose output goes to the log of the try. `resume`: a
    /// checkpoint, or empty. `port`: of its own, for its ranks; 0: that of the worker. `io` or
    /// `not_executable`.
    Result<Started> start(const sweeps::TryTaker::Taken& taken, const std::string& resume,
                          int port);

    /// The newest complete checkpoint of a try.
    std::optional<checkpoint::Found> newest_checkpoint(const sweeps::TryTaker::Taken& taken) const;

    /// GPUQ_RUN_ID of a try.
    std::string run_id(std::size_t number) const;

    /// Where its event files are.
    EventWriter event_writer(std::size_t number, pid_t pid, Time since) const;

private:
    /// GPUQ_CHECKPOINT_DIR of a try.
    std::string checkpoint_dir(std::size_t number) const;
    Request request_of(const sweeps::TryTaker::Taken& taken, const std::string& resume) const;
    checkpoint::Place place_of(const sweeps::TryTaker::Taken& taken) const;
    bool is_set_by_user(std::string_view name) const;
    void describe(Environment& variables, const sweeps::TryTaker::Taken& taken,
                  const std::string& resume) const;

    Store& m_store;
    const WorkerPlan& m_plan;
    const sweeps::Sweep& m_sweep;
};

} // namespace gpuq::supervisor
