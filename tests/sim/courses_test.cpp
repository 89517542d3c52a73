// SPDX-License-Identifier: GPL-2.0-or-later
// The exact courses of generated weeks on generated machines, by checksum. A data structure that
// only makes the simulator faster leaves all of them as they are; a change of its rules does not,
// and then prints the new ones.
#include "sim/small_machine.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace gpuq::sim::small {
namespace {

/// FNV-1a over numbers.
class Checksum {
public:
    void add(std::int64_t value)
    {
        for (int byte = 0; byte < 8; ++byte) {
            m_sum = (m_sum ^ (static_cast<std::uint64_t>(value) >> (8 * byte) & 0xff)) *
                    1099511628211ULL;
        }
    }
    std::uint64_t sum() const { return m_sum; }

private:
    std::uint64_t m_sum = 14695981039346656037ULL;
};

std::uint64_t checksum(const Course& course)
{
    Checksum sum;
    for (const Piece& piece : course.pieces) {
        sum.add(static_cast<std::int64_t>(piece.job));
        sum.add(piece.link);
        sum.add(piece.partition);
        sum.add(piece.eligible.count());
        sum.add(piece.start.count());
        sum.add(piece.end.count());
        for (std::size_t i = 0; i < piece.nodes.size(); ++i) {
            sum.add(piece.nodes[i]);
            sum.add(piece.gpus[i]);
        }
    }
    for (const Outcome& outcome : course.outcomes) {
        sum.add(outcome.waited.count());
        sum.add(outcome.preempted);
        sum.add(static_cast<int>(outcome.ending));
    }
    return sum.sum();
}

/// A machine and its jobs; each feature of the simulator occurs in some of them.
class Generated {
public:
    /// `hurry`: how often the load is that of the others.
    explicit Generated(unsigned seed, int count = 260, int hurry = 1)
        : m_random(seed)
        , m_count(count)
        , m_hurry(hurry)
    {
        nodes();
        queues();
        settings();
        reservations();
        all_jobs();
    }

    Machine machine;
    std::vector<Job> jobs;

private:
    int pick(int most) { return static_cast<int>(m_random() % static_cast<unsigned>(most)); }
    bool one_in(int number) { return pick(number) == 0; }

    void nodes()
    {
        const int count = one_in(6) ? 70 : 4 + pick(12);
        const bool counts_cpus = !one_in(3);
        const bool counts_memory = one_in(3);
        const bool has_switches = one_in(4);
        for (int i = 0; i < count; ++i) {
            Node node{.name = "n" + std::to_string(i), .gpus = one_in(4) ? 2 : 4};
            node.model = one_in(3) ? "a100" : "v100";
            node.cpus = counts_cpus ? node.gpus * (4 + 4 * pick(2)) : 0;
            node.memory_mib = counts_memory ? 64000 : 0;
            node.weight = one_in(2) ? 1 : 10;
            node.leaf = has_switches ? 1 + i / 4 : 0;
            if (one_in(3)) {
                node.features = {"fast"};
            }
            machine.nodes.push_back(node);
        }
    }

    void queues()
    {
        const int count = static_cast<int>(machine.nodes.size());
        const auto part = [&](const std::string& name, int first, int last, Seconds most) {
            Partition partition{.name = name, .max_time = most, .default_time = most / 2};
            for (int node = first; node < last; ++node) {
                partition.nodes.push_back(node);
            }
            machine.partitions.push_back(partition);
        };
        part("long", one_in(2) ? 1 : 0, count, 48h);
        if (one_in(3)) {
            return; // one plain queue
        }
        part("short", 0, 1 + pick(count / 2), 2h);
        part("spill", one_in(2) ? 0 : count / 2, count, 2h);
        machine.partitions[0].tier = 10;
        machine.partitions[1].tier = 20;
        machine.partitions[2].tier = 4;
        machine.partitions[1].job_factor = 5;
        machine.qos.push_back({.name = "user", .priority = 3, .gpus_per_user = 3 + pick(20)});
        machine.qos.push_back({.name = "group", .gpus_per_account = 12, .group_gpus = 40});
        machine.qos.push_back({.name = "few", .priority = 9, .jobs_per_user = 3});
        machine.qos[0].submitted_per_user = one_in(2) ? std::optional(40) : std::nullopt;
        machine.qos[1].group_gpu_minutes = one_in(2) ? std::optional(40000) : std::nullopt;
        machine.partitions[0].qos = pick(3);
        if (one_in(2)) {
            machine.partitions[2].qos = pick(3);
        }
        if (!one_in(3)) {
            machine.settings.preempts = true;
            machine.partitions[2].preempt = one_in(3) ? Preempt::cancel : Preempt::requeue;
            machine.partitions[2].grace = Seconds{60 * pick(3)};
            machine.partitions[0].preempt = one_in(2) ? Preempt::requeue : Preempt::off;
            machine.settings.timing.preempt_exempt = one_in(2) ? Seconds{5min} : Seconds{0};
        }
    }

    void settings()
    {
        Settings& settings = machine.settings;
        settings.release = one_in(5) ? 1911 : 2205;
        if (one_in(2)) {
            settings.weights.age = 1000;
            settings.weights.fair_share = one_in(4) ? 0 : 10000;
            settings.weights.job_size = one_in(2) ? 500 : 0;
            settings.weights.partition = one_in(2) ? 200 : 0;
            settings.weights.qos = one_in(2) ? 300 : 0;
            settings.weights.max_age = one_in(2) ? Seconds{6h} : Seconds{168h};
            settings.weights.calc_period = one_in(2) ? Seconds{60} : Seconds{300};
            settings.weights.dampening = one_in(4) ? 2 : 0;
            settings.cpu_weight = one_in(4) ? 0.25 : 0;
            settings.gpu_weights = {{"a100", 2}};
            machine.shares = {{"lab0", "", "top", 3}, {"lab1", "", "top", 1}, {"lab2", "", "", 2}};
        }
        settings.backfill.on = !one_in(8);
        settings.backfill.one_reservation_per_job = one_in(2);
        settings.backfill.max_jobs_tested = one_in(3) ? 20 : 500;
        settings.backfill.max_jobs_per_user = one_in(4) ? 5 : 0;
        settings.backfill.window = one_in(3) ? Seconds{6h} : Seconds{24h};
        settings.backfill.resolution = one_in(3) ? Seconds{300} : Seconds{60};
        settings.timing.backfill_test = one_in(3) ? 2000us : 0us;
        settings.timing.default_queue_depth = one_in(3) ? 5 : 100;
        settings.timing.submission = 700ms;
        settings.timing.completion = 300ms;
        settings.timing.clock = Seconds{pick(3600)};
    }

    void reservations()
    {
        for (int i = pick(5) - 2; i > 0; --i) {
            const Seconds start{3600 * (10 + pick(60))};
            Reservation made{"r" + std::to_string(i), {0, pick(4), 3}, start, start + 5h};
            machine.reservations.push_back(made);
        }
        if (one_in(4)) {
            machine.reservations.push_back({"class", {1, 2}, 2h, 100000h, true});
        }
    }

    void all_jobs()
    {
        const int gpus = static_cast<int>(machine.nodes.size()) * 4;
        const int gap = 2 * 9000 / gpus / m_hurry; // twice the load that the machine can do
        Seconds now{0};
        for (int i = 0; i < m_count; ++i) {
            now += Seconds{pick(2 * gap)};
            jobs.push_back(one_job(static_cast<std::uint64_t>(i + 1), now));
        }
    }

    Job one_job(std::uint64_t id, Seconds now)
    {
        const Seconds duration{pick(10) < 7 ? 30 + pick(6000) : 3600 + pick(80000)};
        const int gpus = one_in(4) ? 1 + pick(8) : 1 + pick(2);
        Job made = job(id, now, duration, gpus, "user" + std::to_string(pick(7)));
        made.account = "lab" + std::to_string(pick(4));
        made.limit = one_in(2) ? Seconds{duration + 60s} : Seconds{3600 * (1 + pick(48))};
        made.limit = one_in(9) ? Seconds{0} : std::min(made.limit, Seconds{48h});
        made.cpus_per_gpu = 1 + pick(4);
        made.memory_per_gpu_mib = one_in(3) ? 1000 * pick(20) : 0;
        made.submit_part = std::chrono::milliseconds{pick(1000)};
        if (one_in(6)) {
            made.gpus = 0;
            made.cpus_per_node = 1 + pick(8);
            made.nodes = 1 + pick(2);
        }
        if (one_in(4)) {
            made.model = one_in(2) ? "a100" : "v100";
        }
        if (one_in(8)) {
            made.features = {"fast"};
        }
        route(made);
        return made;
    }

    void route(Job& made)
    {
        const bool brief = made.limit <= 2h;
        if (machine.partitions.size() > 1 && brief) {
            made.partitions = one_in(2) ? std::vector{1, 2} : std::vector{1, 0, 2};
        }
        if (!machine.qos.empty() && one_in(2)) {
            made.qos = pick(3);
        }
        if (!machine.reservations.empty() && one_in(10)) {
            made.reservation = 0;
        }
        if (!brief && one_in(3)) {
            made.chain = Chain{.limit = 6h, .partitions = {0}, .gap = 2s, .lost = 60s};
            made.limit = 6h;
        }
    }

    std::mt19937 m_random;
    int m_count;
    int m_hurry;
};

constexpr std::array<std::uint64_t, 64> k_courses{
    0xe3bd6ace47716547, 0x10f37cdd1efa35f8, 0xf92550c6a9c35e26, 0x2ae8ea9afbba24eb,
    0x28b1662872d8a794, 0xcb007ddf722975cc, 0xdd03624f56c60190, 0x30f00edea7bc2c9f,
    0x65d0290fbf6f5598, 0x324693a97db13bd2, 0x79bc47d861df30b7, 0x95a495de4397e1d7,
    0x82ca7988af3e25e0, 0xf5ca971991d4d4c9, 0xda6c4447d8c1dd62, 0x20d19edff94c6161,
    0xb52e6c9d2c0ac7c4, 0xc08179d5407bcf9a, 0xf52d46966ddcef00, 0x6ffa48165fe722d8,
    0x4d838b4e1fbe1ff7, 0xda75065df9301c16, 0x798a2bd502f11a90, 0x79e7d74e860777fc,
    0xafc81cc73602e156, 0xee91bcde126f4bfa, 0x46028f2d8e1d9146, 0xee58dd7460e3e2c5,
    0xa3e52518f3c0365f, 0x7f27917129dba16a, 0xb1bfe152f274855d, 0x8ac84d3f72dc555f,
    0x1555d0b7dcca39b4, 0x986d3c0d57276c20, 0xde9703e25a201c03, 0x89812d7bbbbf2357,
    0x6097b2fabf92fa74, 0xbe3dc40be0effaa7, 0x55cf572d9e65af1d, 0x58261b44d9aa66da,
    0xbbffcb547d17f3a5, 0x212c951f02c610ea, 0xae27a8eeda5cd805, 0x3e96098345cea691,
    0xc44bd0d83139ef91, 0x02a8de6c454d3335, 0xbb09171d7057a3bf, 0xcd9127485e0cfd21,
    0xb126bb0a12445607, 0xbea9c82a7a7468bd, 0x74b58c42abfce013, 0x39cf38c0d3472788,
    0x2b2b071f3c82a24f, 0x64077a9a3ff27e14, 0x3e01f72d6b363646, 0x4318714486a573a9,
    0x44a726e96b5d8fc0, 0x8064bb038ab5699c, 0x6187d5e3c53d1d6c, 0x35c98c870973022b,
    0x916a5403acdf5571, 0x96370295ce076894, 0xa65ab6abaca97842, 0x4c5df21567942e9a,
};

/// The same with queues of hundreds.
constexpr std::array<std::uint64_t, 16> k_long_queues{
    0x30241bb20ae854cb, 0xc7858f02f866569e, 0x40b882df329508fd, 0x51fb9f17587e39d4,
    0xd2d352f8a267f3dd, 0x5b4f1a5d18e02b8d, 0x2cc62de15e156682, 0xc0cedd35a6e71a0c,
    0xd7342c6f88cfff87, 0xa5bebd37f82aca71, 0x304d5b70bd7179f7, 0x89f678afbefd9dca,
    0x31fe790c2390e85c, 0xe084dbefe34ae959, 0x762f05ec57069675, 0x2ebfd42a45e54de7,
};

TEST(Courses, OfLongQueuesAreExactlyAsBefore)
{
    std::string found;
    for (unsigned seed = 0; seed < k_long_queues.size(); ++seed) {
        const Generated made(seed, 1200, 8);
        const std::uint64_t sum = checksum(course_of(made.machine, made.jobs));
        EXPECT_EQ(sum, k_long_queues[seed]) << "seed " << seed;
        found += fmt::format("0x{:016x},{}", sum, seed % 4 == 3 ? "\n" : " ");
    }
    if (HasFailure()) {
        fmt::print("{}", found);
    }
}

TEST(Courses, AreExactlyAsBefore)
{
    std::string found;
    for (unsigned seed = 0; seed < k_courses.size(); ++seed) {
        const Generated made(seed);
        const std::uint64_t sum = checksum(course_of(made.machine, made.jobs));
        EXPECT_EQ(sum, k_courses[seed]) << "seed " << seed;
        found += fmt::format("0x{:016x},{}", sum, seed % 4 == 3 ? "\n" : " ");
    }
    if (HasFailure()) {
        fmt::print("{}", found);
    }
}

} // namespace
} // namespace gpuq::sim::small
