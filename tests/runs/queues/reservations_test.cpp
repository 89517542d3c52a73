// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/reservations.h"

#include "fakes/now.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Node node(const std::string& name, int gpus, const std::string& queue)
{
    Node node;
    node.name = name;
    node.gpus = {{"a10", gpus, 0}};
    node.partitions = {queue};
    return node;
}

Reservation reservation(const std::string& name, const std::string& nodes, Time start)
{
    return {name, start, start + 2h, nodes, "", {"ada"}, {}};
}

TEST(Reservations, OfGpuqNameTheirMaker)
{
    EXPECT_EQ(to_text({"ada", "ml"}), "gpuq:ada:ml");
    EXPECT_EQ(parse_reservation_name("gpuq:ada:ml"), (ReservationName{"ada", "ml"}));
    for (const char* other : {"ml", "gpuq:ada", "gpuq::ml", "gpuq:ada:", "gpuq", ""}) {
        EXPECT_EQ(parse_reservation_name(other), std::nullopt) << other;
    }
}

TEST(Reservations, WithGpusAreListedByStart)
{
    const std::vector<Node> nodes{node("c1", 2, "short"), node("c2", 2, "short"),
                                  node("l1", 4, "long"), node("cpu1", 0, "short")};
    const auto found = reserved_gpus(
        {reservation("later", "c[1-2],cpu1", k_now + 1h), reservation("now", "l1", k_now),
         reservation("cpus", "cpu1", k_now), reservation("unknown", "x[1-2][1-2]", k_now)},
        nodes);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].reservation.name, "now");
    EXPECT_EQ(found[0].gpus, 4);
    EXPECT_THAT(found[1].nodes, ElementsAre("c1", "c2"));
    EXPECT_EQ(found[1].gpus, 4);
    EXPECT_THAT(found[1].queues, ElementsAre("short"));
}

TEST(Reservations, MarkTheirNodesWhileTheyAreOn)
{
    std::vector<Node> nodes{node("c1", 2, "short"), node("c2", 2, "short"), node("c3", 2, "short")};
    nodes[2].reserved = true; // known to Slurm
    const auto reserved = reserved_gpus(
        {reservation("now", "c1", k_now), reservation("later", "c2", k_now + 1min)}, nodes);
    mark_reserved(nodes, reserved, k_now);
    EXPECT_TRUE(nodes[0].reserved);
    EXPECT_FALSE(nodes[1].reserved);
    EXPECT_TRUE(nodes[2].reserved);
}

TEST(Reservations, AreInTheWayOfAJobThatWouldRunIntoThem)
{
    const auto all = reserved_gpus({reservation("ml", "c1", k_now + 1h)}, {node("c1", 2, "short")});
    EXPECT_EQ(in_the_way(all, {"short"}, k_now, k_now + 2h), all);
    EXPECT_THAT(in_the_way(all, {"short"}, k_now, k_now + 1h), IsEmpty());
    EXPECT_THAT(in_the_way(all, {"long"}, k_now, k_now + 2h), IsEmpty());
    EXPECT_THAT(in_the_way(all, {"short"}, k_now + 3h, k_now + 5h), IsEmpty());
}

} // namespace
} // namespace gpuq
