// SPDX-License-Identifier: GPL-2.0-or-later
#include "lua/submit_script.h"
#include "policy/lua.h"
#include "policy/read.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

constexpr unsigned k_owner = 1000;
constexpr unsigned k_operator = 900;
constexpr std::int64_t k_success = 0;

/// The status that the script of a policy returns for an operator's change of ada's job.
std::int64_t status_of(const ScriptFields& change, unsigned uid = k_operator, unsigned state = 1)
{
    const auto reading =
        policy::read_policy("version: 1\n"
                            "helper: ops\n"
                            "pools: {a: {nodes: n1, gpus: 'k80:4'}}\n"
                            "queues: {q: {time: 2h, pools: a, extend: {by: 1h, times: 2}}}\n",
                            "policy.yaml");
    const auto script = lua::load_submit_script(policy::job_submit_lua(reading->policy));
    const ScriptFields job = {{"partition", "q"},         {"qos", "gpuq_q"},
                              {"time_limit", 120U},       {"user_id", k_owner},
                              {"user_name", "ada"},       {"job_state", state},
                              {"tres_per_node", "gpu:1"}, {"min_nodes", 1U}};
    return (*script)->modify(job, change, uid)->status;
}

TEST(Extension, AnOperatorRaisesTheLimitWithinTheRule)
{
    EXPECT_EQ(status_of({{"time_limit", 240U}}), k_success);
    EXPECT_NE(status_of({{"time_limit", 241U}}), k_success);
}

TEST(Extension, OnlyThatOfARunningJobOfAnotherUser)
{
    EXPECT_NE(status_of({{"time_limit", 180U}}, k_owner), k_success);
    EXPECT_NE(status_of({{"time_limit", 180U}}, k_operator, 0), k_success) << "a waiting job";
}

TEST(Extension, NothingElseChangesWithIt)
{
    EXPECT_NE(status_of({{"time_limit", 180U}, {"tres_per_node", "gpu:5"}}), k_success);
}

} // namespace
} // namespace gpuq
