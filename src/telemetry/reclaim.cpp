// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/reclaim.h"

#include "telemetry/ledger.h"

#include <algorithm>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using By = IdleLook::By;
using Says = IdleLook::Says;

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

IdleLook IdleLooks::of_gpus(const Sample& sample)
{
    IdleLook look;
    look.elapsed = sample.elapsed;
    look.covers = std::clamp(sample.stands_for, 0ms, k_longest_step);
    look.says = sample.gpus.empty() ? Says::unknown : Says::unused;
    look.by = sample.gpus.empty() ? By::gpu : By::nothing;
    for (const GpuSample& gpu : sample.gpus) {
        const Reading& busy = gpu[GpuMetric::busy];
        const Reading& memory = gpu[GpuMetric::memory_used];
        look.memory_kib += memory.value().value_or(0);
        if (busy.known() && *busy.value() > 0) {
            look.says = Says::works; // one GPU at work is enough
            look.by = By::gpu;
        } else if (!(busy.known() && memory.known()) && look.says != Says::works) {
            look.says = Says::unknown;
            look.by = busy.known() ? By::gpu_memory : By::gpu;
            look.why = busy.known() ? memory.why() : busy.why();
        }
    }
    return look;
}

/// Both the last ten seconds and the last step within them must exceed the share, so that the idle
/// time starts at the last step of a burst and not ten seconds later.
By IdleLooks::works_elsewhere(const Use& now) const
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

IdleLook IdleLooks::look(const Sample& sample)
{
    if (m_elapsed && sample.elapsed < *m_elapsed) {
        *this = {}; // a different sampler
    }
    m_elapsed = sample.elapsed;
    IdleLook look = of_gpus(sample);
    const Reading& cpu = sample.run[RunMetric::cpu];
    const Reading& read = sample.run[RunMetric::disk_read];
    const Reading& written = sample.run[RunMetric::disk_written];
    const bool known = cpu.known() && read.known() && written.known();
    const Use use{sample.elapsed, cpu.value().value_or(0),
                  read.value().value_or(0) + written.value().value_or(0)};
    look.cpu_ms = use.cpu_ms;
    look.disk_bytes = use.disk_bytes;
    const By elsewhere = known ? works_elsewhere(use) : By::nothing;
    // The amount of used GPU memory changes.
    const bool moved = m_memory_kib && *m_memory_kib != look.memory_kib;
    if (look.says == Says::unused && moved) {
        look.says = Says::works;
        look.by = By::gpu_memory;
    } else if (look.says != Says::works && elsewhere != By::nothing) {
        look.says = Says::works;
        look.by = elsewhere;
    } else if (look.says == Says::unused && !known) {
        look.says = Says::unknown;
        look.by = cpu.known() ? By::disk : By::cpu;
        look.why = !cpu.known() ? cpu.why() : !read.known() ? read.why() : written.why();
    }
    m_memory_kib = look.memory_kib;
    m_recent.push_back(use);
    while (m_recent.size() > 1 && m_recent[1].elapsed <= use.elapsed - k_smoothed) {
        m_recent.pop_front();
    }
    return look;
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

IdleEvidence IdleWatch::evidence(const IdleLook& look) const
{
    IdleEvidence evidence;
    evidence.at = look.elapsed;
    evidence.idle_since = m_since.value_or(look.elapsed);
    evidence.missing = missing_before(look.elapsed);
    evidence.samples = m_samples;
    evidence.memory_kib = look.memory_kib;
    evidence.cpu_ms = grown(m_cpu_ms, look.cpu_ms);
    evidence.disk_bytes = grown(m_disk_bytes, look.disk_bytes);
    evidence.started = m_started;
    evidence.last_input = m_last_input;
    evidence.last_output = m_last_output;
    return evidence;
}

IdleVerdict IdleWatch::add(const IdleLook& look)
{
    if (m_last && look.elapsed < *m_last) {
        // A different sampler with a different start: earlier data is not comparable.
        *this = {m_rule, m_measured, m_exempt};
    }
    const milliseconds from = look.elapsed - look.covers;
    if (!m_last) {
        begin_anew(from); // the time before was not measured
    }
    if (m_last && from > *m_last) {
        m_gaps.push_back({from, from - *m_last});
    }
    m_last = look.elapsed;
    while (!m_gaps.empty() && m_gaps.front().end <= look.elapsed - m_rule.after) {
        m_gaps.pop_front();
    }
    if (look.says != Says::unused) {
        begin_anew(look.elapsed);
    }
    if (m_count_from_next && look.elapsed >= *m_since) {
        m_count_from_next = false;
        m_cpu_ms = look.cpu_ms;
        m_disk_bytes = look.disk_bytes;
    }
    m_samples += look.says == Says::unused && from >= *m_since ? 1 : 0;

    IdleVerdict verdict;
    verdict.evidence = evidence(look);
    verdict.by = look.by;
    verdict.why = look.why;
    if (!m_measured || look.says == Says::unknown) {
        verdict.state = IdleVerdict::State::unknown;
        return verdict;
    }
    const milliseconds idle = look.elapsed - *m_since;
    const auto most_missing = m_rule.after * (100 - k_idle_coverage) / 100;
    if (look.says == Says::works || idle < m_rule.after - m_rule.warn) {
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
        m_warned = look.elapsed;
    }
    // Not before the warning has been active for `warn`; the sample that triggered it late does not
    // delay the release.
    const milliseconds due =
        std::max(*m_since + m_rule.after, *m_warned + m_rule.warn - look.covers);
    verdict.left = std::max(due - look.elapsed, 0ms);
    verdict.state = verdict.left > 0ms ? IdleVerdict::State::warn : IdleVerdict::State::release;
    return verdict;
}

std::optional<IdleVerdict> replayed(const std::vector<Sample>& samples, const IdleRule& rule,
                                    const IdleEvidence& evidence)
{
    IdleLooks looks;
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
        const IdleVerdict verdict = watch.add(looks.look(sample));
        if (sample.elapsed == evidence.at) {
            return verdict;
        }
    }
    return std::nullopt;
}

std::string_view word(By by)
{
    switch (by) {
    case By::gpu:
        return "gpu";
    case By::gpu_memory:
        return "gpu_memory";
    case By::cpu:
        return "cpu";
    case By::disk:
        return "disk";
    case By::nothing:
        break;
    }
    return "nothing";
}

} // namespace gpuq::telemetry
