// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/sampling.h"

#include "core/number.h"
#include "log/log.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/job_signals.h"
#include "supervisor/sampler/run_use.h"
#include "telemetry/ledger.h"
#include "telemetry/sample_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <malloc.h>
#include <mutex>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto k_period = 1000ms;
constexpr int k_nice = 10;
/// Closing a file sends its bytes to the server of a network file system.
constexpr int k_samples_per_open = 5;
/// For the last records of the log, which a slow disk may delay.
constexpr auto k_last_records = 200ms;

/// The driver, and the only thread that may hang in it.
class Driver {
public:
    Driver(const OpenGpus& open, const JobGpus& held)
    {
        if (held.count > 0) {
            std::thread([this, open, held] { measure_forever(open, held); }).detach();
        }
    }
    DriverState state()
    {
        const std::lock_guard lock(m_mutex);
        return m_state;
    }

private:
    void measure_forever(const OpenGpus& open, const JobGpus& held)
    {
        const auto gpus = open(held);
        auto next = Clock::now();
        while (true) {
            {
                const std::lock_guard lock(m_mutex);
                m_state.asked = Clock::now();
            }
            auto activities = gpus->measure();
            {
                const std::lock_guard lock(m_mutex);
                m_state.last = std::move(activities);
                m_state.answered = Clock::now();
                m_state.asked.reset();
            }
            next = std::max(next + k_period, Clock::now());
            std::this_thread::sleep_until(next);
        }
    }

    std::mutex m_mutex;
    DriverState m_state;
};

std::vector<GpuName> names_of(const std::vector<GpuReading>& activities)
{
    std::vector<GpuName> names;
    for (const GpuReading& activity : activities) {
        names.push_back(activity.name);
    }
    return names;
}

class SampleFile {
public:
    SampleFile(SampleHeader header)
        : m_name(samples_name(header.node))
        , m_names(header.gpus)
        , m_writer(std::move(header))
    {
        open(O_TRUNC);
        write(m_writer.header());
    }
    void name(std::vector<GpuName> names)
    {
        if (!names.empty() && names != m_names) {
            m_names = names;
            m_writer.rename(std::move(names));
            write(m_writer.header());
        }
    }
    void add(const Sample& sample)
    {
        for (const Piece& piece : m_writer.add(sample)) {
            write(piece);
        }
        if (++m_since_open >= k_samples_per_open) {
            open(0);
        }
    }

private:
    void open(int how)
    {
        m_since_open = 0;
        m_file.reset();
        m_file.reset(::openat(k_sample_directory, m_name.c_str(),
                              O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | how, 0600));
    }
    /// On a full disk samples are missing; a partial one is not valid.
    void write(const Piece& piece)
    {
        const ssize_t written = ::pwrite(m_file.get(), piece.bytes.data(), piece.bytes.size(),
                                         static_cast<off_t>(piece.offset));
        const bool failed = written != static_cast<ssize_t>(piece.bytes.size());
        if (failed && !m_failed) {
            log::warning(log::Part::samples, "can't write {}: {}", m_name,
                         written < 0 ? std::strerror(errno) : "the disk is full");
        }
        m_failed = failed;
    }

    std::string m_name;
    std::vector<GpuName> m_names;
    SampleWriter m_writer;
    Descriptor m_file;
    int m_since_open = 0;
    bool m_failed = false;
};

/// Logs each change between a driver that answers and one that hangs.
class DriverLog {
public:
    void update(const std::vector<GpuSample>& gpus)
    {
        const bool hangs = !gpus.empty() && gpus.front()[GpuMetric::busy] == Reading(Unknown::hung);
        if (hangs && !m_hangs) {
            log::warning(log::Part::samples, "the GPU driver has not answered for {} s",
                         std::chrono::floor<std::chrono::seconds>(k_driver_patience).count());
        } else if (m_hangs && !hangs) {
            log::warning(log::Part::samples, "the GPU driver answers again");
        }
        m_hangs = hangs;
    }

private:
    bool m_hangs = false;
};

/// True if the run has ended.
bool wait_until(Clock::time_point when)
{
    pollfd lifeline{k_sample_lifeline, POLLIN, 0};
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(when - Clock::now());
        const int ready = ::poll(&lifeline, 1, static_cast<int>(std::max(left, 0ms).count()));
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            return true;
        }
        if (left <= 0ms) {
            return false;
        }
    }
}

Time now_by_wall()
{
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
}

std::size_t parts_of(const std::string& list)
{
    return list.empty() ? 0
                        : 1 + static_cast<std::size_t>(std::count(list.begin(), list.end(), ','));
}

} // namespace

std::vector<GpuSample> gpus_at(const DriverState& state, std::size_t count, Clock::time_point now)
{
    std::vector<GpuSample> samples(count, GpuSample::unknown(Unknown::not_measured));
    if (state.asked && now - *state.asked >= k_driver_patience) {
        samples.assign(count, GpuSample::unknown(Unknown::hung));
    } else if (state.answered && now - *state.answered <= k_longest_step) {
        for (std::size_t i = 0; i < std::min(count, state.last.size()); ++i) {
            samples[i] = state.last[i].sample;
        }
    }
    return samples;
}

JobGpus held_gpus(const std::function<std::optional<std::string>(const char*)>& variables,
                  const std::string& variable, std::size_t asked_for)
{
    JobGpus held;
    held.visible = variables("CUDA_VISIBLE_DEVICES").value_or("");
    held.ids = variables(variable.c_str()).value_or("");
    const bool named = held.visible.find("GPU-") != std::string::npos ||
                       held.visible.find("MIG-") != std::string::npos;
    const std::size_t visible_count = parts_of(named ? held.visible : held.ids);
    held.count = std::min(visible_count > 0 ? visible_count : asked_for, k_most_gpus);
    return held;
}

void sample(const OpenGpus& open, const JobGpus& held, const std::string& node, std::uint32_t cpus,
            pid_t root, bool with_activities)
{
    heed_no_job_signals();
    ::prctl(PR_SET_NAME, "gpuq-sample");
    // Lets the kernel wake all sleeping processes of a node together.
    ::prctl(PR_SET_TIMERSLACK, 20'000'000UL);
    ::mallopt(M_ARENA_MAX, 1);
    ::setpriority(PRIO_PROCESS, 0, k_nice);
    RunUse use(root);
    Driver driver(open, held);
    SampleFile file({now_by_wall(), node, std::vector<GpuName>(held.count), cpus});
    log::debug(log::Part::samples, "measuring {} GPUs and process {} on {}", held.count, root,
               node);
    DriverLog driver_log;
    const auto began = Clock::now();
    auto last = began;
    auto next = began;
    GpuTime gpu_time;
    telemetry::ActivityMeter activities;
    for (bool ended = false; !ended;) {
        next = std::max(next + k_period, Clock::now());
        ended = wait_until(next) || (::kill(root, 0) != 0 && errno == ESRCH);
        const auto now = Clock::now();
        const DriverState state = driver.state();
        Sample sample;
        sample.at = now_by_wall();
        sample.elapsed = std::chrono::floor<milliseconds>(now - began);
        sample.stands_for = sample.elapsed - std::chrono::floor<milliseconds>(last - began);
        sample.gpus = gpus_at(state, held.count, now);
        driver_log.update(sample.gpus);
        sample.run = use.measure(now);
        gpu_time += gpu_time_between(sample.stands_for, sample.gpus);
        sample.gpu_time = gpu_time;
        last = now;
        file.name(names_of(state.last));
        file.add(sample);
        if (with_activities) {
            // If the pipe is full, the report is lost, and counts as missing.
            const SampledActivity sampled{began, activities.activity(sample)};
            [[maybe_unused]] const ssize_t visible_count =
                ::write(k_sample_activities, &sampled, sizeof sampled);
        }
    }
    log::flush(k_last_records);
    // A thread may still hang in the driver.
    ::_exit(0);
}

} // namespace gpuq::supervisor
