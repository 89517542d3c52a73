// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/use_recorder.h"

#include "supervisor/sampler/sampling.h"

#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// For the last sample, which a full or slow disk may delay.
constexpr auto k_last_sample = 300ms;

} // namespace

UseRecorder::UseRecorder(Loop& loop, const Options& options)
    : m_loop(loop)
    , m_options(options)
    , m_note(loop, options)
    , m_began_at(loop.now())
{
}

bool UseRecorder::is_due()
{
    if (!m_sample_at) {
        return false;
    }
    if (m_loop.now() < *m_sample_at) {
        m_loop.wake_at(*m_sample_at);
        return false;
    }
    m_sample_at.reset();
    return true;
}

Descriptor UseRecorder::start(const Run& run, bool activities)
{
    const Descriptor directory = std::exchange(m_directory, {});
    m_sampler.start({m_options.sampler, m_options.node,
                     m_options.first ? k_gpus_of_step : k_gpus_of_job, run.request.gpus.count,
                     directory.get(), activities});
    return m_sampler.take_activities();
}

void UseRecorder::stop(bool noted)
{
    m_sampler.stop();
    m_stopped_at = m_loop.now();
    m_to_be_noted = noted && m_sampler.was_started() &&
                    m_stopped_at - m_began_at >= m_options.patience.noted_from;
}

void UseRecorder::update(const Request& request, JobEnd end)
{
    (void)m_note.take();
    if (!m_to_be_noted) {
        return;
    }
    if (m_sampler.pid() && m_loop.now() < m_stopped_at + k_last_sample) {
        m_loop.wake_at(m_stopped_at + k_last_sample);
        return;
    }
    m_to_be_noted = false;
    const auto length = std::chrono::floor<std::chrono::milliseconds>(m_stopped_at - m_began_at);
    const std::chrono::milliseconds allocated = length * request.gpus.count * request.nodes;
    m_note.start({HelperWork::Kind::note, encoded(allocated, end)}, m_options.patience.noting);
    (void)m_note.take(); // wakes the loop at its time limit
}

} // namespace gpuq::supervisor
