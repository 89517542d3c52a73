// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "supervisor/base/helper_call.h"
#include "supervisor/sampler/sampler.h"

#include <chrono>
#include <optional>

namespace gpuq::supervisor {

/// Measures the link's use of its GPUs with a sampler process, and at the end has it noted for
/// Slurm's accounting (sampler/use_note.h).
class UseRecorder {
public:
    /// The link begins. The references must outlive the object.
    UseRecorder(Loop& loop, const Options& options);

    /// A descriptor of the link's directory, until the sampler has been started; -1: unknown.
    int directory() const { return m_directory.get(); }
    void set_directory(Descriptor directory) { m_directory = std::move(directory); }

    /// The program runs: sampling begins after Patience::sampling.
    void begin() { m_sample_at = m_loop.now() + m_options.patience.sampling; }
    /// True once, when sampling begins. Otherwise wakes the loop then.
    bool is_due();
    /// Returns the pipe of the activities if they are wanted (Sampler::take_activities).
    Descriptor start(const Run& run, bool activities);
    /// Ends sampling. `noted`: the use is to be noted unless the link was too short.
    void stop(bool noted);
    /// Call in each round: notes the use once the last sample has been written.
    void update(const Request& request, JobEnd end);
    bool is_noting() const { return m_to_be_noted || m_note.in_progress(); }

    Sampler& sampler() { return m_sampler; }
    const Sampler& sampler() const { return m_sampler; }
    std::optional<pid_t> noting_pid() const { return m_note.pid(); }

private:
    Loop& m_loop;
    const Options& m_options;
    Sampler m_sampler;
    HelperCall m_note;
    Descriptor m_directory;
    const Loop::Steady m_began_at;
    std::optional<Loop::Steady> m_sample_at;
    Loop::Steady m_stopped_at;
    bool m_to_be_noted = false;
};

} // namespace gpuq::supervisor
