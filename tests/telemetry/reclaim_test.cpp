// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/reclaim.h"

#include "telemetry/sample_file.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using State = IdleVerdict::State;
using Random = std::mt19937_64;

constexpr IdleRule k_rule{10min, 2min, 0ms, 4};
constexpr auto k_length = 40min;

/// One second of a run, before evaluation.
struct Second {
    std::vector<GpuSample> gpus;
    std::uint64_t cpu_ms = 5; ///< CPU time used in it; an idle process needs a little
    std::uint64_t disk = 4096;
    bool cpu_known = true, disk_known = true;
    bool missing = false; ///< no sample covers it
    bool typed = false, printed = false;
    milliseconds length = 1s;
};

struct Trace {
    std::string kind;
    std::vector<Second> seconds;
    std::optional<milliseconds> idle_from; ///< the label: truly idle from this time to the end
    IdleRule rule = k_rule;
    bool measured = true, exempt = false;
    bool new_sampler_at_idle = false;
    std::chrono::hours clock_steps{0}; ///< the node's clock is stepped by this from time to time
};

struct PredecessorCheck {
    Sample sample;
    milliseconds at{0}; ///< on a clock that never restarts
    IdleVerdict verdict;
};

GpuSample gpu(std::uint64_t percent, std::uint64_t memory_kib = 0)
{
    GpuSample made = GpuSample::unknown(Unknown::not_supported);
    made[GpuMetric::busy] = Reading::of(percent * 100);
    made[GpuMetric::memory_used] = Reading::of(memory_kib);
    return made;
}

std::size_t index_of(milliseconds time)
{
    return static_cast<std::size_t>(time / 1s);
}

int between(Random& random, int least, int most)
{
    return std::uniform_int_distribution(least, most)(random);
}

bool one_in(Random& random, int number)
{
    return between(random, 1, number) == 1;
}

/// A trace without any use.
Trace unused(Random& random, int gpus = 0)
{
    Trace trace;
    const auto held = static_cast<std::size_t>(gpus > 0 ? gpus : between(random, 1, 4));
    const std::uint64_t memory = one_in(random, 2) ? 0 : 8 << 20;
    trace.seconds.resize(index_of(k_length));
    for (Second& second : trace.seconds) {
        second.gpus.assign(held, gpu(0, memory));
        second.cpu_ms = static_cast<std::uint64_t>(between(random, 0, 25));
    }
    return trace;
}

using Change = std::function<void(Second&)>;

void during(Trace& trace, std::size_t from, std::size_t length, const Change& change)
{
    for (std::size_t i = from; i < std::min(from + length, trace.seconds.size()); ++i) {
        change(trace.seconds[i]);
    }
}

/// Applies `change` repeatedly, with pauses shorter than the rule's time.
void now_and_then(Trace& trace, Random& random, int most_length, const Change& change)
{
    for (std::size_t i = 0; i < trace.seconds.size();) {
        i += static_cast<std::size_t>(between(random, 20, 590));
        const auto length = static_cast<std::size_t>(between(random, 1, most_length));
        during(trace, i, length, change);
        i += length;
    }
}

Change trains(Random& random)
{
    return [&random](Second& second) {
        const auto which =
            static_cast<std::size_t>(between(random, 0, static_cast<int>(second.gpus.size()) - 1));
        second.gpus[which] = gpu(static_cast<std::uint64_t>(between(random, 1, 100)), 9 << 20);
        second.cpu_ms = 900;
    };
}

Change computes(Random& random)
{
    return [&random](Second& second) {
        second.cpu_ms = static_cast<std::uint64_t>(between(random, 150, 8000));
    };
}

void reads(Second& second)
{
    second.disk = 5 << 20;
}

Change loses_one(Unknown why)
{
    return [why](Second& second) { second.gpus.back() = GpuSample::unknown(why); };
}

Change loses_all(Unknown why)
{
    return [why](Second& second) {
        std::fill(second.gpus.begin(), second.gpus.end(), GpuSample::unknown(why));
    };
}

struct Kind {
    const char* name;
    std::function<Trace(Random&)> make;
};

/// Traces that must not lead to a release.
std::vector<Kind> busy_kinds()
{
    const auto always = [](const Change& change, int gpus = 0) {
        return [change, gpus](Random& random) {
            Trace trace = unused(random, gpus);
            during(trace, 0, trace.seconds.size(), change);
            return trace;
        };
    };
    const auto sometimes = [](auto change_of, int most_length) {
        return [change_of, most_length](Random& random) {
            Trace trace = unused(random);
            now_and_then(trace, random, most_length, change_of(random));
            return trace;
        };
    };
    const auto fixed = [](const Change& change) { return [change](Random&) { return change; }; };
    const auto phases = [](auto change_of) {
        return [change_of](Random& random) {
            Trace trace = unused(random);
            during(trace, 0, trace.seconds.size(), trains(random));
            for (int phase = 0; phase < 3; ++phase) {
                const auto from = static_cast<std::size_t>(between(random, 0, 1200));
                const auto length = static_cast<std::size_t>(between(random, 300, 1200));
                during(trace, from, length, [&](Second& second) {
                    second.gpus.assign(second.gpus.size(), gpu(0, 9 << 20));
                    second.cpu_ms = 10;
                    change_of(random)(second);
                });
            }
            return trace;
        };
    };
    return {
        {"training",
         [](Random& random) {
             Trace trace = unused(random);
             during(trace, 0, trace.seconds.size(), trains(random));
             return trace;
         }},
        {"short bursts every few minutes", sometimes(trains, 3)},
        {"data loading on the CPU", phases(computes)},
        {"data loading from a disk", phases(fixed(reads))},
        {"checkpoints", phases(fixed([](Second& second) { second.disk = 200 << 20; }))},
        {"validation on the CPU", sometimes(computes, 200)},
        {"a debugger's prompt", sometimes(fixed([](Second& second) { second.typed = true; }), 1)},
        {"a notebook",
         [](Random& random) {
             Trace trace = unused(random);
             now_and_then(trace, random, 2, [](Second& second) {
                 second.typed = true;
                 second.cpu_ms = 60;
             });
             now_and_then(trace, random, 5, trains(random));
             return trace;
         }},
        {"a log that grows", sometimes(fixed([](Second& second) { second.printed = true; }), 1)},
        {"memory of the GPU that is taken",
         [](Random& random) {
             Trace trace = unused(random, 1);
             std::uint64_t memory = 1 << 20;
             now_and_then(trace, random, 1, [&](Second& second) {
                 memory += 4096;
                 second.gpus[0] = gpu(0, memory);
             });
             return trace;
         }},
        {"one of several GPUs works",
         [](Random& random) {
             Trace trace = unused(random, 4);
             const auto which = static_cast<std::size_t>(between(random, 0, 3));
             during(trace, 0, trace.seconds.size(),
                    [&](Second& second) { second.gpus[which] = gpu(3, 1 << 20); });
             return trace;
         }},
        {"one of several works, each time another", sometimes(trains, 30)},
        {"MIG", always(loses_all(Unknown::not_supported))},
        {"MIG beside a whole GPU", always(loses_one(Unknown::not_supported), 2)},
        {"no driver", always(loses_all(Unknown::no_driver))},
        {"which GPU is not known", always(loses_all(Unknown::which_gpu))},
        {"an old driver, which tells memory alone", always([](Second& second) {
             for (GpuSample& each : second.gpus) {
                 each[GpuMetric::busy] = Unknown::not_supported;
             }
         })},
        {"a value that can not be", always(loses_one(Unknown::implausible))},
        {"a driver that hangs",
         [](Random& random) {
             Trace trace = unused(random);
             const auto from = static_cast<std::size_t>(between(random, 0, 590));
             during(trace, from, trace.seconds.size(), loses_all(Unknown::hung));
             return trace;
         }},
        {"a lost GPU beside an unused one",
         [](Random& random) {
             Trace trace = unused(random, 2);
             const auto from = static_cast<std::size_t>(between(random, 0, 590));
             during(trace, from, trace.seconds.size(), loses_one(Unknown::lost));
             return trace;
         }},
        {"one unknown now and then", sometimes(fixed(loses_one(Unknown::not_measured)), 1)},
        {"a CPU that nobody measures", always([](Second& second) { second.cpu_known = false; })},
        {"a disk that nobody measures", always([](Second& second) { second.disk_known = false; })},
        {"many samples missing",
         [](Random& random) {
             Trace trace = unused(random);
             const int every = between(random, 2, 10);
             for (std::size_t i = 1; i < trace.seconds.size(); ++i) {
                 // Gaps of ten seconds: one shorter than the interval of a sample would not count.
                 trace.seconds[i].missing = (i / 10) % static_cast<std::size_t>(every) == 0;
             }
             return trace;
         }},
        {"a sampler that dies",
         [](Random& random) {
             Trace trace = unused(random);
             const auto from = static_cast<std::size_t>(between(random, 0, 590));
             during(trace, from, trace.seconds.size(),
                    [](Second& second) { second.missing = true; });
             return trace;
         }},
        {"a job suspended for longer than the rule's time",
         [](Random& random) {
             Trace trace = unused(random);
             const auto from = static_cast<std::size_t>(between(random, 0, 300));
             during(trace, from, 1400, [](Second& second) { second.missing = true; });
             during(trace, from + 1500, trace.seconds.size(), trains(random));
             return trace;
         }},
        {"a slow start",
         [](Random& random) {
             Trace trace = unused(random);
             trace.rule.start = 10min;
             const auto until = static_cast<std::size_t>(between(random, 600, 1195));
             during(trace, until, trace.seconds.size(), trains(random));
             return trace;
         }},
        {"nearly idle: some seconds too short",
         [](Random& random) {
             Trace trace = unused(random);
             for (std::size_t i = 595; i < trace.seconds.size(); i += 595) {
                 trains(random)(trace.seconds[i]);
             }
             return trace;
         }},
        {"exempted",
         [](Random& random) {
             Trace trace = unused(random);
             trace.exempt = true;
             return trace;
         }},
        {"nodes that nobody measures",
         [](Random& random) {
             Trace trace = unused(random);
             trace.measured = false;
             return trace;
         }},
    };
}

/// Traces that must lead to a release, from the time given by their label.
std::vector<Kind> idle_kinds()
{
    const auto after = [](auto what, const Change& ever_after = Change()) {
        return [what, ever_after](Random& random) {
            Trace trace = unused(random);
            const auto until = static_cast<std::size_t>(between(random, 1, 1500));
            what(trace, random, until);
            trace.idle_from = std::chrono::seconds(until);
            if (ever_after) {
                during(trace, until, trace.seconds.size(), ever_after);
            }
            return trace;
        };
    };
    const auto trained = [](Trace& trace, Random& random, std::size_t until) {
        during(trace, 0, until, trains(random));
        trace.seconds[until - 1].gpus[0] = gpu(100, 9 << 20);
    };
    const auto computed = [](Trace& trace, Random& random, std::size_t until) {
        during(trace, 0, until, computes(random));
        trace.seconds[until - 1].cpu_ms = 900;
    };
    const auto never = [](Random& random) {
        Trace trace = unused(random);
        trace.idle_from = 0ms;
        return trace;
    };
    return {
        {"never used", never},
        {"never used, after a start that does not count",
         [never](Random& random) {
             Trace trace = never(random);
             trace.rule.start = 5min;
             trace.idle_from = 5min;
             return trace;
         }},
        {"died inside: no process, no memory", after(trained,
                                                     [](Second& second) {
                                                         second.gpus.assign(second.gpus.size(),
                                                                            gpu(0, 0));
                                                         second.cpu_ms = 0;
                                                     })},
        {"finished, but sleeping with all its memory",
         after(trained,
               [](Second& second) { second.gpus.assign(second.gpus.size(), gpu(0, 9 << 20)); })},
        {"a CPU phase, and then nothing", after(computed)},
        {"a debugger that was left", after([](Trace& trace, Random&, std::size_t until) {
             during(trace, 0, until, [](Second& second) { second.typed = true; });
         })},
        {"a log that has ended", after([](Trace& trace, Random&, std::size_t until) {
             during(trace, 0, until, [](Second& second) { second.printed = true; });
         })},
        {"a notebook that looks at its kernel now and then",
         [never](Random& random) {
             Trace trace = never(random);
             for (std::size_t i = 0; i < trace.seconds.size(); i += 10) {
                 trace.seconds[i].cpu_ms = static_cast<std::uint64_t>(between(random, 50, 200));
             }
             return trace;
         }},
        {"a few samples missing",
         [never](Random& random) {
             Trace trace = never(random);
             // At most two seconds in sixty.
             for (std::size_t i = 30; i + 2 < trace.seconds.size(); i += 60) {
                 const auto from = i + static_cast<std::size_t>(between(random, 0, 20));
                 trace.seconds[from].missing = trace.seconds[from + 1].missing = true;
             }
             trace.seconds.back().missing = false;
             return trace;
         }},
        {"samples that come early and late",
         [never](Random& random) {
             Trace trace = never(random);
             for (Second& second : trace.seconds) {
                 second.length = milliseconds(between(random, 700, 2400));
             }
             return trace;
         }},
        {"a clock that is set",
         [never](Random& random) {
             Trace trace = never(random);
             trace.clock_steps = std::chrono::hours(between(random, -48, 48));
             return trace;
         }},
        {"a sampler that began anew",
         [after, trained](Random& random) {
             Trace trace = after(trained)(random);
             trace.new_sampler_at_idle = true;
             return trace;
         }},
        {"GPUs in another order", [never](Random& random) {
             Trace trace = never(random);
             for (Second& second : trace.seconds) {
                 for (std::size_t i = 0; i < second.gpus.size(); ++i) {
                     second.gpus[i] = gpu(0, (i + 1) << 20);
                 }
                 std::shuffle(second.gpus.begin(), second.gpus.end(), random);
             }
             return trace;
         }}};
}

/// The samples that gpuq would have recorded, and the verdict at each of them.
std::vector<PredecessorCheck> judged(const Trace& trace)
{
    ActivityMeter activities;
    IdleWatch watch(trace.rule, trace.measured, trace.exempt);
    watch.began(0ms);
    std::vector<PredecessorCheck> all;
    milliseconds now = 0ms, base = 0ms, last = 0ms;
    std::uint64_t cpu = 0, disk = 0;
    Time wall{std::chrono::hours(24 * 20'000)};
    for (std::size_t i = 0; i < trace.seconds.size(); ++i) {
        const Second& second = trace.seconds[i];
        if (trace.new_sampler_at_idle && i == index_of(*trace.idle_from)) {
            base = last = now;
            cpu = disk = 0;
        }
        now += second.length;
        wall += second.length + (i % 600 == 599 ? trace.clock_steps : 0h);
        cpu += second.cpu_ms;
        disk += second.disk;
        if (second.typed) {
            watch.typed(now - base);
        }
        if (second.printed) {
            watch.printed(now - base);
        }
        if (second.missing) {
            continue;
        }
        Sample sample;
        sample.at = wall;
        sample.elapsed = now - base;
        sample.stands_for = now - last;
        sample.gpus = second.gpus;
        sample.run[RunMetric::cpu] = second.cpu_known ? Reading::of(cpu) : Unknown::failed;
        sample.run[RunMetric::disk_read] =
            second.disk_known ? Reading::of(disk) : Unknown::no_permission;
        sample.run[RunMetric::disk_written] = Reading::of(0);
        last = now;
        all.push_back({sample, now, watch.add(activities.activity(sample))});
    }
    return all;
}

std::optional<std::size_t> first_release(const std::vector<PredecessorCheck>& all)
{
    const auto found = std::find_if(all.begin(), all.end(), [](const PredecessorCheck& each) {
        return each.verdict.state == State::release;
    });
    return found == all.end()
               ? std::nullopt
               : std::optional(static_cast<std::size_t>(std::distance(all.begin(), found)));
}

std::vector<Trace> traces(const std::vector<Kind>& kinds, unsigned of_each)
{
    std::vector<Trace> all;
    for (const Kind& kind : kinds) {
        for (unsigned seed = 1; seed <= of_each; ++seed) {
            Random random(seed * 7919 + all.size());
            all.push_back(kind.make(random));
            all.back().kind = fmt::format("{}, seed {}", kind.name, seed);
        }
    }
    return all;
}

TEST(Reclaim, ReleasesNothingThatWorksOrIsNotKnown)
{
    const std::vector<Trace> all = traces(busy_kinds(), 16);
    EXPECT_GE(all.size(), 450U);
    for (const Trace& trace : all) {
        const auto verdicts = judged(trace);
        const auto released = first_release(verdicts);
        EXPECT_FALSE(released) << trace.kind << ", at " << verdicts[*released].at.count() << " ms";
    }
}

TEST(Reclaim, CatchesWhatIsIdleWithinTheTimeAndOneSample)
{
    const std::vector<Trace> all = traces(idle_kinds(), 12);
    EXPECT_GE(all.size(), 150U);
    for (const Trace& trace : all) {
        const auto verdicts = judged(trace);
        const auto released = first_release(verdicts);
        ASSERT_TRUE(released) << trace.kind;
        const milliseconds due = *trace.idle_from + trace.rule.after;
        EXPECT_GE(verdicts[*released].at, due) << trace.kind;
        // The previous sample was too early.
        EXPECT_LT(verdicts[*released - 1].at, due + verdicts[*released].sample.stands_for)
            << trace.kind;
    }
}

TEST(Reclaim, WarnsInTimeBeforeEachRelease)
{
    for (const Trace& trace : traces(idle_kinds(), 4)) {
        const auto verdicts = judged(trace);
        const auto released = first_release(verdicts);
        ASSERT_TRUE(released) << trace.kind;
        std::size_t warned = *released;
        while (warned > 0 && verdicts[warned - 1].verdict.state == State::warn) {
            --warned;
        }
        EXPECT_GE(verdicts[*released].at - verdicts[warned].at + 2500ms, trace.rule.warn)
            << trace.kind;
    }
}

TEST(Reclaim, SaysTheSameOfSamplesThatAreReadFromTheFile)
{
    for (const Trace& trace : traces(idle_kinds(), 1)) {
        if (trace.new_sampler_at_idle) {
            continue; // its file starts anew, too
        }
        const auto verdicts = judged(trace);
        SampleWriter writer({verdicts.front().sample.at, "node",
                             std::vector<GpuName>(verdicts.front().sample.gpus.size())});
        std::string file;
        const auto put = [&](const Piece& piece) {
            file.resize(std::max(file.size(), piece.offset + piece.bytes.size()));
            file.replace(piece.offset, piece.bytes.size(), piece.bytes);
        };
        put(writer.header());
        for (const PredecessorCheck& each : verdicts) {
            for (const Piece& piece : writer.add(each.sample)) {
                put(piece);
            }
        }
        // The time of the start and of typed and printed text is part of the evidence.
        const IdleVerdict& first_due = verdicts[*first_release(verdicts)].verdict;
        const auto again = replayed(all_samples(file), trace.rule, first_due.evidence);
        EXPECT_EQ(again, first_due) << trace.kind;
    }
}

TEST(Reclaim, IsNeverBroughtNearerByAnUnknown)
{
    Random random(11);
    std::vector<Trace> all = traces(idle_kinds(), 3);
    for (Trace& trace : traces(busy_kinds(), 2)) {
        all.push_back(std::move(trace));
    }
    for (Trace& trace : all) {
        const auto before = judged(trace);
        const auto released = first_release(before);
        for (int times = between(random, 1, 40); times > 0; --times) {
            Second& second = trace.seconds[static_cast<std::size_t>(
                between(random, 0, static_cast<int>(trace.seconds.size()) - 1))];
            GpuSample& which = second.gpus[static_cast<std::size_t>(
                between(random, 0, static_cast<int>(second.gpus.size()) - 1))];
            switch (between(random, 0, 4)) {
            case 0:
                which = GpuSample::unknown(Unknown::hung);
                break;
            case 1:
                which[GpuMetric::busy] = Unknown::implausible;
                break;
            case 2:
                which[GpuMetric::memory_used] = Unknown::not_measured;
                break;
            case 3:
                second.cpu_known = false;
                break;
            default:
                second.disk_known = false;
                break;
            }
        }
        const auto after = judged(trace);
        if (const auto now = first_release(after)) {
            ASSERT_TRUE(released) << trace.kind;
            EXPECT_GE(after[*now].at, before[*released].at) << trace.kind;
        }
    }
}

TEST(Reclaim, ShowsWhyItReleases)
{
    Random random(1);
    Trace trace = unused(random, 2);
    for (Second& second : trace.seconds) {
        second.gpus.assign(2, gpu(0, 4 << 20));
        second.cpu_ms = 10;
        second.disk = 0;
    }
    trace.seconds[99].printed = true;
    const auto all = judged(trace);
    const IdleEvidence& evidence = all[*first_release(all)].verdict.evidence;
    EXPECT_EQ(evidence.at, 700s);
    EXPECT_EQ(evidence.idle_since, 100s);
    EXPECT_EQ(evidence.missing, 0ms);
    EXPECT_EQ(evidence.samples, 600U);
    EXPECT_EQ(evidence.memory_kib, 8U << 20);
    EXPECT_EQ(evidence.cpu_ms, 6000U);
    EXPECT_EQ(evidence.started, 0ms);
    EXPECT_EQ(evidence.last_output, 100s);
    EXPECT_EQ(evidence.last_input, std::nullopt);
}

TEST(Reclaim, BeginsAnewWhenItWasPutOff)
{
    IdleWatch watch(k_rule, true);
    watch.began(0ms);
    std::vector<milliseconds> released;
    for (milliseconds at = 1s; at <= 25min; at += 1s) {
        Activity activity;
        activity.elapsed = at;
        activity.covers = 1s;
        activity.says = Activity::Says::unused;
        if (watch.add(activity).state == State::release) {
            released.push_back(at);
            watch.put_off();
        }
    }
    EXPECT_EQ(released, (std::vector<milliseconds>{10min, 20min}));
}

TEST(Reclaim, TellsWhatIsNotKnown)
{
    Random random(1);
    Trace trace = unused(random, 2);
    loses_one(Unknown::hung)(trace.seconds[0]);
    const IdleVerdict verdict = judged(trace).front().verdict;
    EXPECT_EQ(verdict.state, State::unknown);
    EXPECT_EQ(verdict.by, Activity::By::gpu);
    EXPECT_EQ(verdict.why, Unknown::hung);
}

} // namespace
} // namespace gpuq::telemetry
