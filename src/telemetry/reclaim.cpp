// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/reclaim.h"

#include "telemetry/ledger.h"

#include <algorithm>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using By = Activity::By;
using Says = Activity::Says;

constexpr milliseconds k_smoothed = 10s;
constexpr std::uint64_t k_ms_per_s = 1000;

std::uint64_t count_of(milliseconds time)
{
    return static_cast<std::uint64_t>(std::max(time, 0ms).count());
}

/// Counters may restart; a decrease counts as 0.
std::uint64_t grown(std::uint64_t from, std::uint64_t to)
{
    return to > from ? to - from : 0;
}

/// The CPU time that an idle program may use in this time.
std::uint64_t cpu_share(milliseconds time)
{
    return count_of(time) * k_idle_cpu_percent / 100;
}

std::uint64_t disk_share(milliseconds time)
{
    return count_of(time) * k_idle_disk_rate / k_ms_per_s;
}

} // namespace

Activity ActivityMeter::of_gpus(const Sample& sample)
{
    Activity activity;
    activity.elapsed = sample.elapsed;
    activity.covers = std::clamp(sample.stands_for, 0ms, k_longest_step);
    activity.says = sample.gpus.empty() ? Says::unknown : Says::unused;
    activity.by = sample.gpus.empty() ? By::gpu : By::nothing;
    for (const GpuSample& gpu : sample.gpus) {
        const Reading& busy = gpu[GpuMetric::busy];
        const Reading& memory = gpu[GpuMetric::memory_used];
        activity.memory_kib += memory.value().value_or(0);
        if (busy.known() && *busy.value() > 0) {
            activity.says = Says::works; // one GPU at work is enough
            activity.by = By::gpu;
        } else if (!(busy.known() && memory.known()) && activity.says != Says::works) {
            activity.says = Says::unknown;
            activity.by = busy.known() ? By::gpu_memory : By::gpu;
            activity.why = busy.known() ? memory.why() : busy.why();
        }
    }
    return activity;
}

/// Both the last ten seconds and the last step within them must exceed the share, so that the idle
/// time starts at the last step of a burst and not ten seconds later.
By ActivityMeter::works_elsewhere(const Use& now) const
{
    if (m_recent.empty()) {
        return By::nothing;
    }
    const Use& last = m_recent.back();
    const Use& first = m_recent.front();
    const milliseconds step = now.elapsed - last.elapsed;
    const milliseconds all = std::max(now.elapsed - first.elapsed, k_smoothed);
    if (grown(first.cpu_ms, now.cpu_ms) > cpu_share(all) &&
        grown(last.cpu_ms, now.cpu_ms) > cpu_share(step)) {
        return By::cpu;
    }
    return grown(first.disk_bytes, now.disk_bytes) > disk_share(all) &&
                   grown(last.disk_bytes, now.disk_bytes) > disk_share(step)
               ? By::disk
               : By::nothing;
}

Activity ActivityMeter::activity(const Sample& sample)
{
    if (m_elapsed && sample.elapsed < *m_elapsed) {
        *this = {}; // a different sampler
    }
    m_elapsed = sample.elapsed;
    Activity activity = of_gpus(sample);
    const Reading& cpu = sample.run[RunMetric::cpu];
    const Reading& read = sample.run[RunMetric::disk_read];
    const Reading& written = sample.run[RunMetric::disk_written];
    const bool known = cpu.known() && read.known() && written.known();
    const Use use{sample.elapsed, cpu.value().value_or(0),
                  read.value().value_or(0) + written.value().value_or(0)};
    activity.cpu_ms = use.cpu_ms;
    activity.disk_bytes = use.disk_bytes;
    const By elsewhere = known ? works_elsewhere(use) : By::nothing;
    // The amount of used GPU memory changes.
    const bool moved = m_memory_kib && *m_memory_kib != activity.memory_kib;
    if (activity.says == Says::unused && moved) {
        activity.says = Says::works;
        activity.by = By::gpu_memory;
    } else if (activity.says != Says::works && elsewhere != By::nothing) {
        activity.says = Says::works;
        activity.by = elsewhere;
    } else if (activity.says == Says::unused && !known) {
        activity.says = Says::unknown;
        activity.by = cpu.known() ? By::disk : By::cpu;
        activity.why = !cpu.known() ? cpu.why() : !read.known() ? read.why() : written.why();
    }
    m_memory_kib = activity.memory_kib;
    m_recent.push_back(use);
    while (m_recent.size() > 1 && m_recent[1].elapsed <= use.elapsed - k_smoothed) {
        m_recent.pop_front();
    }
    return activity;
}

IdleWatch::IdleWatch(const IdleRule& rule, bool measured, bool exempt)
    : m_rule(rule)
    , m_measured(measured)
    , m_exempt(exempt)
{
}

void IdleWatch::begin_anew(milliseconds at)
{
    if (m_since && at <= *m_since) {
        return;
    }
    m_since = at;
    m_samples = 0;
    m_count_from_next = true;
    m_warned.reset();
}

void IdleWatch::began(milliseconds at)
{
    m_started = at;
    begin_anew(at + m_rule.start);
}

void IdleWatch::typed(milliseconds at)
{
    m_last_input = std::max(m_last_input.value_or(at), at);
    begin_anew(at);
}

void IdleWatch::printed(milliseconds at)
{
    m_last_output = std::max(m_last_output.value_or(at), at);
    begin_anew(at);
}

void IdleWatch::put_off()
{
    if (m_last) {
        begin_anew(*m_last);
    }
}

milliseconds IdleWatch::missing_before(milliseconds at) const
{
    const milliseconds from = at - m_rule.after;
    milliseconds missing = 0ms;
    for (const Gap& gap : m_gaps) {
        missing += std::clamp(gap.end - from, 0ms, gap.length);
    }
    return missing;
}

IdleEvidence IdleWatch::evidence(const Activity& activity) const
{
    IdleEvidence evidence;
    evidence.at = activity.elapsed;
    evidence.idle_since = m_since.value_or(activity.elapsed);
    evidence.missing = missing_before(activity.elapsed);
    evidence.samples = m_samples;
    evidence.memory_kib = activity.memory_kib;
    evidence.cpu_ms = grown(m_cpu_ms, activity.cpu_ms);
    evidence.disk_bytes = grown(m_disk_bytes, activity.disk_bytes);
    evidence.started = m_started;
    evidence.last_input = m_last_input;
    evidence.last_output = m_last_output;
    return evidence;
}

IdleVerdict IdleWatch::add(const Activity& activity)
{
    if (m_last && activity.elapsed < *m_last) {
        // A different sampler with a different start: earlier data is not comparable.
        *this = {m_rule, m_measured, m_exempt};
    }
    const milliseconds from = activity.elapsed - activity.covers;
    if (!m_last) {
        begin_anew(from); // the time before was not measured
    }
    if (m_last && from > *m_last) {
        m_gaps.push_back({from, from - *m_last});
    }
    m_last = activity.elapsed;
    while (!m_gaps.empty() && m_gaps.front().end <= activity.elapsed - m_rule.after) {
        m_gaps.pop_front();
    }
    if (activity.says != Says::unused) {
        begin_anew(activity.elapsed);
    }
    if (m_count_from_next && activity.elapsed >= *m_since) {
        m_count_from_next = false;
        m_cpu_ms = activity.cpu_ms;
        m_disk_bytes = activity.disk_bytes;
    }
    m_samples += activity.says == Says::unused && from >= *m_since ? 1 : 0;

    IdleVerdict verdict;
    verdict.evidence = evidence(activity);
    verdict.by = activity.by;
    verdict.why = activity.why;
    if (!m_measured || activity.says == Says::unknown) {
        verdict.state = IdleVerdict::State::unknown;
        return verdict;
    }
    const milliseconds idle = activity.elapsed - *m_since;
    const auto most_missing = m_rule.after * (100 - k_idle_coverage) / 100;
    if (activity.says == Says::works || idle < m_rule.after - m_rule.warn) {
        return verdict;
    }
    if (m_exempt) {
        verdict.state = IdleVerdict::State::exempt;
        return verdict;
    }
    if (verdict.evidence.missing > most_missing) {
        m_warned.reset(); // the earlier warning is no longer valid
        verdict.state = IdleVerdict::State::unknown;
        return verdict;
    }
    if (!m_warned) {
        m_warned = activity.elapsed;
    }
    // Not before the warning has been active for `warn`; the sample that triggered it late does not
    // delay the release.
    const milliseconds due =
        std::max(*m_since + m_rule.after, *m_warned + m_rule.warn - activity.covers);
    verdict.left = std::max(due - activity.elapsed, 0ms);
    verdict.state = verdict.left > 0ms ? IdleVerdict::State::warn : IdleVerdict::State::release;
    return verdict;
}

std::optional<IdleVerdict> replayed(const std::vector<Sample>& samples, const IdleRule& rule,
                                    const IdleEvidence& evidence)
{
    ActivityMeter activities;
    IdleWatch watch(rule, /*measured=*/true);
    if (evidence.started) {
        watch.began(*evidence.started);
    }
    if (evidence.last_input) {
        watch.typed(*evidence.last_input);
    }
    if (evidence.last_output) {
        watch.printed(*evidence.last_output);
    }
    for (const Sample& sample : samples) {
        const IdleVerdict verdict = watch.add(activities.activity(sample));
        if (sample.elapsed == evidence.at) {
            return verdict;
        }
    }
    return std::nullopt;
}

} // namespace gpuq::telemetry
