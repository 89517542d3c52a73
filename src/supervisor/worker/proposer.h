// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"
#include "ports/store.h"
#include "sweeps/records.h"
#include "sweeps/taker.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// Asks the program of `--propose` for further tries, as a child, without blocking the worker.
///
/// One worker of the sweep asks at a time: it holds a lock, which the kernel releases with its
/// process. Where the file system has no locks, several may ask; of their answers to the same
/// results one counts, because the next file of the list can be created only once.
class Proposer {
public:
    /// All must outlive the object.
    Proposer(Store& store, const sweeps::Sweep& sweep, sweeps::TryTaker& taker)
        : m_store(store)
        , m_sweep(sweep)
        , m_taker(taker)
    {
    }
    Proposer(const Proposer&) = delete;
    Proposer& operator=(const Proposer&) = delete;
    /// Ends the program.
    ~Proposer();

    enum class Answer {
        added,   ///< tries, perhaps by another worker
        pending, ///< call again after the next event, or in a second
        none,    ///< for now; no more at all once the list is closed
    };
    /// Call when no try is left for a free slot. A program that fails, or prints anything but
    /// tries, closes the list; so does one that proposes nothing while no try runs. Errors of the
    /// disk may be temporary: each call fails until the answer of the program is written.
    Result<Answer> ask(EventLoop::Moment now);

private:
    Result<Answer> start(EventLoop::Moment now);
    Result<Answer> take_output(int wait_status);
    Result<Answer> close_list(const std::string& failure);
    Result<Answer> write_down();
    Result<Descriptor> take_lock();
    std::string output() const;

    Store& m_store;
    const sweeps::Sweep& m_sweep;
    sweeps::TryTaker& m_taker;
    pid_t m_pid = -1;  ///< of the program; -1: none
    Descriptor m_lock; ///< held while the program runs
    Descriptor m_output;
    EventLoop::Moment m_kill_at;
    int m_batch = 0; ///< that its answer becomes
    /// Its tries (`added`), or why there are no more (`none`).
    struct Unwritten {
        Answer answer = Answer::none;
        std::string text;
    };
    std::optional<Unwritten> m_unwritten;
    struct Results {
        std::size_t tries = 0, ended = 0;
        bool operator==(const Results&) const = default;
    };
    static Results results_of(const std::vector<sweeps::Try>& tries);
    Results m_asked;                   ///< that it was given
    std::optional<Results> m_answered; ///< that it had no proposal for
};

} // namespace gpuq::supervisor
