// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuq::telemetry {
namespace {

/// The input of the rules.
struct Facts {
    const Profile& profile;
    PhaseTimes phases;
    double known = 0; ///< seconds of GPU time with known use
    bool enough = false;
    double length = 0; ///< of all links, in seconds
    Given given;

    /// Share of the known GPU time.
    double share(Phase phase) const
    {
        const auto time = phases[static_cast<std::size_t>(phase)];
        return known > 0 ? static_cast<double>(time.count()) / 1000 / known : 0;
    }
};

using Found = std::optional<ProfileAdvice>;

/// True if enough of the samples of `count` GPUs or nodes is known.
bool enough(const Facts& facts, const Measured& measured, int count, double share)
{
    return measured.known >= k_advice_seconds && measured.known >= share * facts.length * count;
}

bool enough_of_nodes(const Facts& facts, Measure measure, double share)
{
    return enough(facts, facts.profile[measure], facts.given.nodes, share);
}

int percent(double share)
{
    return static_cast<int>(std::lround(100 * share));
}

/// The smallest number of cores of any node; nothing if unknown.
std::optional<double> cores_of(const Facts& facts)
{
    std::optional<double> cores;
    for (const Track& node : facts.profile.nodes) {
        if (node.cores) {
            cores = std::min(cores.value_or(*node.cores), *node.cores);
        }
    }
    if (!cores && facts.given.cpus) {
        cores = *facts.given.cpus;
    }
    return cores;
}

constexpr double k_unused = 0.01; ///< a GPU busy for less than this share counts as unused

Found unused_gpu(const Facts& facts)
{
    if (!facts.enough || facts.share(Phase::busy) >= k_unused) {
        return std::nullopt;
    }
    return ProfileAdvice{
        "gpu_not_used",
        fmt::format("The GPU was busy {:.1f} % of the time: the program does not use it; check "
                    "whether its framework sees a GPU, or request none (-g 0)",
                    100 * facts.share(Phase::busy))};
}

/// For some of several GPUs.
Found unused_gpus(const Facts& facts)
{
    constexpr auto k_busy = static_cast<std::size_t>(Measure::busy);
    int unused = 0, used = 0;
    for (const Track& gpu : facts.profile.gpus) {
        const Measured& busy = gpu.measured[k_busy];
        if (enough(facts, busy, 1, k_advice_share)) {
            ++(busy.mean() < 100 * k_unused ? unused : used);
        }
    }
    const auto all = static_cast<int>(facts.profile.gpus.size());
    if (unused == 0 || used == 0 || used + unused < all) {
        return std::nullopt;
    }
    return ProfileAdvice{"gpus_not_used",
                         fmt::format("{} of {} GPUs {} busy less than 1 % of the time: the program "
                                     "does not use {}; start it for {} GPUs or ask for fewer",
                                     unused, all, unused == 1 ? "was" : "were",
                                     unused == 1 ? "it" : "them", all)};
}

bool short_of_cpus(const Facts& facts)
{
    constexpr double k_full = 0.9;
    const Measured& cpu = facts.profile[Measure::cpu];
    const auto cores = cores_of(facts);
    return facts.enough && enough_of_nodes(facts, Measure::cpu, k_advice_share) && cores &&
           facts.share(Phase::waiting) >= 0.1 && cpu.mean() >= k_full * *cores;
}

Found few_cpus(const Facts& facts)
{
    if (!short_of_cpus(facts)) {
        return std::nullopt;
    }
    const double cores = *cores_of(facts);
    const Measured& cpu = facts.profile[Measure::cpu];
    return ProfileAdvice{"few_cpus",
                         fmt::format("GPU busy {} %, the CPUs at {} % of their {:g} core{}: data "
                                     "preparation is short of CPUs (request -c {:g})",
                                     percent(facts.share(Phase::busy)),
                                     std::min(100, percent(cpu.mean() / cores)), cores,
                                     cores == 1 ? "" : "s", 2 * cores)};
}

Found waits(const Facts& facts)
{
    constexpr double k_much = 0.2;
    if (!facts.enough || facts.share(Phase::waiting) < k_much || short_of_cpus(facts) ||
        facts.share(Phase::busy) < k_unused) {
        return std::nullopt;
    }
    return ProfileAdvice{
        "waits_for_data",
        fmt::format("The GPU waits {} % of the time while the CPUs or the disk work: more workers "
                    "of the data loader, a faster disk or data prepared beforehand may help",
                    percent(facts.share(Phase::waiting)))};
}

Found idles(const Facts& facts)
{
    constexpr double k_much = 0.3;
    if (!facts.enough || facts.share(Phase::other_idle) < k_much ||
        facts.share(Phase::busy) < k_unused) {
        return std::nullopt;
    }
    return ProfileAdvice{
        "gpu_idle", fmt::format("The GPU is idle {} % of the time, and neither CPUs nor disk are "
                                "known to work then: the program waits for something else",
                                percent(facts.share(Phase::other_idle)))};
}

Found saves_much(const Facts& facts)
{
    constexpr double k_much = 0.1;
    if (!facts.enough || facts.share(Phase::saving) < k_much) {
        return std::nullopt;
    }
    return ProfileAdvice{"saves_much",
                         fmt::format("The GPU waits {} % of the time for checkpoints to be "
                                     "written: save less often",
                                     percent(facts.share(Phase::saving)))};
}

Found long_start(const Facts& facts)
{
    constexpr double k_much = 0.2, k_long = 300;
    const double share = facts.share(Phase::start_up);
    if (!facts.enough || share < k_much || share * facts.known < k_long ||
        facts.share(Phase::busy) < k_unused) {
        return std::nullopt;
    }
    return ProfileAdvice{"long_start",
                         fmt::format("{} % of the GPU time is over before the GPU's first work: "
                                     "prepare data beforehand, or make links longer",
                                     percent(share))};
}

/// The highest use of any GPU as a share of its own memory; nothing unless known for all GPUs.
std::optional<std::pair<double, double>> gpu_memory(const Facts& facts)
{
    constexpr auto k_used = static_cast<std::size_t>(Measure::memory_used);
    std::optional<std::pair<double, double>> most; ///< used, total
    for (const Track& gpu : facts.profile.gpus) {
        const Measured& used = gpu.measured[k_used];
        if (!enough(facts, used, 1, k_advice_share_at_most) || gpu.memory_total.value_or(0) <= 0) {
            return std::nullopt;
        }
        const std::pair<double, double> now = {used.most, *gpu.memory_total};
        if (!most || now.first / now.second > most->first / most->second) {
            most = now;
        }
    }
    return most;
}

Found gpu_memory_advice(const Facts& facts)
{
    constexpr double k_little = 0.25, k_nearly_all = 0.95, k_worth_it = 16;
    const auto memory = gpu_memory(facts);
    if (!memory || facts.share(Phase::busy) < k_unused) {
        return std::nullopt;
    }
    const auto [used, total] = *memory;
    if (total >= k_worth_it && used < k_little * total) {
        return ProfileAdvice{"little_gpu_memory",
                             fmt::format("GPU memory: {:.1f} of {:.0f} GiB used at most: a smaller "
                                         "GPU would do (-g {}G+), or larger batches",
                                         used, total, std::max(1, int(std::ceil(used * 1.2))))};
    }
    if (used > k_nearly_all * total) {
        return ProfileAdvice{"gpu_memory_full",
                             fmt::format("GPU memory: {:.1f} of {:.1f} GiB used at most: little is "
                                         "left before it runs out",
                                         used, total)};
    }
    return std::nullopt;
}

Found ram_advice(const Facts& facts)
{
    constexpr double k_little = 0.25, k_nearly_all = 0.95, k_worth_it = 8;
    const Measured& ram = facts.profile[Measure::ram];
    const double asked = facts.given.ram_gib.value_or(0);
    if (asked <= 0 || !enough_of_nodes(facts, Measure::ram, k_advice_share_at_most)) {
        return std::nullopt;
    }
    const int share = percent(ram.most / asked);
    if (asked >= k_worth_it && ram.most < k_little * asked) {
        return ProfileAdvice{"little_ram",
                             fmt::format("RAM: {} % of the {:g} GiB that were asked for used at "
                                         "most: --mem {:.0f}G would do",
                                         share, asked, std::ceil(std::max(1.0, ram.most * 1.5)))};
    }
    if (ram.most > k_nearly_all * asked) {
        return ProfileAdvice{"ram_full", fmt::format("RAM: {} % of the {:g} GiB that were asked "
                                                     "for used at most: beyond that the program "
                                                     "is killed; ask for more (--mem)",
                                                     share, asked)};
    }
    return std::nullopt;
}

Found many_cpus(const Facts& facts)
{
    constexpr double k_little = 0.25;
    constexpr int k_worth_it = 4;
    const auto most = facts.profile.quantiles[static_cast<std::size_t>(Measure::cpu)].at(0.95);
    const int asked = facts.given.cpus.value_or(0);
    if (asked < k_worth_it || !enough_of_nodes(facts, Measure::cpu, k_advice_share_at_most) ||
        !most || *most >= k_little * asked) {
        return std::nullopt;
    }
    return ProfileAdvice{"many_cpus",
                         fmt::format("CPU: {:.1f} of the {} cores that were asked for used in 95 % "
                                     "of the time: -c {} would do",
                                     *most, asked, std::max(1, int(std::ceil(*most * 1.5))))};
}

constexpr std::array k_rules = {unused_gpu, unused_gpus, few_cpus,          waits,      idles,
                                saves_much, long_start,  gpu_memory_advice, ram_advice, many_cpus};

constexpr std::array<std::string_view, 12> k_codes = {
    "gpu_not_used",    "gpus_not_used", "few_cpus",   "waits_for_data",
    "gpu_idle",        "saves_much",    "long_start", "little_gpu_memory",
    "gpu_memory_full", "little_ram",    "ram_full",   "many_cpus"};

} // namespace

std::span<const std::string_view> advice_codes()
{
    return k_codes;
}

std::vector<ProfileAdvice> advice_of(const Profile& profile, const GpuTime& total,
                                     const Given& given)
{
    Facts facts{profile, phases_of(profile.phases, total), 0, false, 0, given};
    for (const ProfiledLink& link : profile.links) {
        facts.length += std::chrono::duration<double>(link.to - link.from).count();
    }
    facts.known = static_cast<double>((total.busy + total.idle).count()) / 1000;
    const double all = static_cast<double>(total.allocated().count()) / 1000;
    facts.enough = facts.known >= k_advice_seconds && facts.known >= k_advice_share * all;
    std::vector<ProfileAdvice> advice;
    for (const auto& rule : k_rules) {
        if (auto found = rule(facts)) {
            advice.push_back(*std::move(found));
        }
    }
    return advice;
}

} // namespace gpuq::telemetry
