// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/node_resources.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using NodeSet = NodeResources::NodeSet;

Node node_with(const std::string& name, int gpus)
{
    Node made;
    made.name = name;
    made.gpus = {{"k80", gpus, 0}};
    made.cpus = 16;
    return made;
}

NodeSet with(const NodeResources& resources, int gpus)
{
    const NodeSet* const found = resources.with_free_gpus(gpus);
    return found == nullptr ? NodeSet() : *found;
}

TEST(NodeResources, FindsNodesByTheirFreeGpus)
{
    Inventory inventory;
    for (int i = 0; i < 64; ++i) {
        inventory.nodes.push_back(node_with("cpu" + std::to_string(i), 0));
    }
    inventory.nodes.push_back(node_with("n0", 4));
    inventory.nodes.push_back(node_with("n1", 2));
    NodeResources resources(inventory);
    EXPECT_EQ(with(resources, 0), (NodeSet{~0ULL, 3}));
    EXPECT_EQ(with(resources, 2), (NodeSet{0, 3}));
    EXPECT_EQ(with(resources, 3), (NodeSet{0, 1}));
    EXPECT_EQ(with(resources, 5), NodeSet());
    const NodeResources::Part part{64, 0, 3};
    resources.take(part);
    EXPECT_EQ(with(resources, 1), (NodeSet{0, 3}));
    EXPECT_EQ(with(resources, 2), (NodeSet{0, 2}));
    resources.give(part);
    EXPECT_EQ(with(resources, 4), (NodeSet{0, 1}));
}

/// Slurm's data about jobs and nodes may disagree.
TEST(NodeResources, HasNoMoreFreeGpusThanTheNode)
{
    Inventory inventory;
    inventory.nodes = {node_with("n0", 2)};
    inventory.nodes[0].shares = {{GpuShare::Kind::shard, "k80", 2, 100, 0, {}}};
    NodeResources resources(inventory);
    NodeResources::Part part;
    part.shares = 2;
    resources.take(part);
    resources.give(part);
    resources.give(part);
    EXPECT_EQ(with(resources, 2), NodeSet{1});
    EXPECT_EQ(resources.free_gpus(), 2);
}

} // namespace
} // namespace gpuq
