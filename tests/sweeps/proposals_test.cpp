// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/proposals.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "sweeps/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RunKey k_key = RunKey::make(Time(1'700'000'000s), {1, 2, 3, 4, 5, 6, 7, 8});

Sweep proposed_sweep()
{
    Sweep sweep{"cal", {"lr", "n"}, {}, 1, {}, {k_key}};
    sweep.propose = Proposals{{"search.py", "--fast"}, {"lr=log:1e-5..1", "n=2..8"}, 40};
    sweep.run.submitted_at = k_key.made_at();
    sweep.run.request.program = {"train", "{lr}"};
    sweep.run.request.name = "cal";
    return sweep;
}

std::string proposal_mistake(std::string_view text)
{
    const auto found = proposals_in(text, {"lr", "n"}, 9);
    return found ? "" : found.error().text;
}

TEST(Proposals, AreGivenTheResultsOfAllTries)
{
    std::vector<Try> tries(2);
    tries[0].values = {"0.1", "a \"b\""};
    tries[1].values = {"0.2", "3"};
    tries[1].state = Try::State::ended;
    tries[1].reached = {NAN, 0.5, 7};
    tries[1].end.emplace().status = 3;
    EXPECT_EQ(results_text(proposed_sweep(), tries),
              R"({"try":1,"state":"waiting","values":{"lr":"0.1","n":"a \"b\""},"end":null,)"
              R"("status":null,"best":null,"best_step":null,"last":null})"
              "\n"
              R"({"try":2,"state":"ended","values":{"lr":"0.2","n":"3"},"end":"finished",)"
              R"("status":3,"best":0.5,"best_step":7,"last":null})"
              "\n");
}

TEST(Proposals, AreReadAsATableOfTries)
{
    EXPECT_THAT(*proposals_in(" \n", {"lr", "n"}, 9), IsEmpty());
    const std::string text = "{\"n\": 3, \"lr\": \"1e-4\"}\n{\"n\": 4, \"lr\": 0.5}\n";
    EXPECT_THAT(*proposals_in(text, {"lr", "n"}, 9),
                ElementsAre(ElementsAre("1e-4", "3"), ElementsAre("0.5", "4")));
    EXPECT_THAT(*proposals_in(text, {"lr", "n"}, 1), ElementsAre(ElementsAre("1e-4", "3")));
}

TEST(Proposals, AreRefusedIfTheyAreNoTries)
{
    EXPECT_EQ(proposal_mistake("lr,n\n1,2\n"), "output:1: not a JSON object");
    EXPECT_EQ(proposal_mistake("{\"lr\": 1}"), "the tries have the parameters lr, n");
    EXPECT_EQ(proposal_mistake("{\"lr\": 1, \"m\": 2}"), "the tries have the parameters lr, n");
    EXPECT_EQ(proposal_mistake("{\"lr\": 1, \"n\": 2}\nTraceback"), "output:2: not a JSON object");
    EXPECT_THAT(proposal_mistake("{\"lr\": [1], \"n\": 2}"), HasSubstr("'lr' is neither"));
    EXPECT_THAT(proposal_mistake("{\"lr\": \"\\u0000\", \"n\": 2}"), HasSubstr("zero byte"));
}

TEST(Proposals, EndWithAFileThatARetryRemoves)
{
    fakes::MemoryStore store;
    ASSERT_TRUE(write_sweep(store, proposed_sweep(), {}));
    EXPECT_EQ(read_sweep(store, k_key)->propose, proposed_sweep().propose);
    Board board(store, k_key);
    ASSERT_TRUE(board.refresh());
    EXPECT_FALSE(board.is_closed());
    ASSERT_TRUE(store.write(layout::sweep_closed(k_key), "search.py: exit status 1"));
    ASSERT_TRUE(board.refresh());
    EXPECT_TRUE(board.is_closed());
    EXPECT_EQ(board.failure(), "search.py: exit status 1");
    ASSERT_TRUE(continue_sweep(store, k_key));
    Board again(store, k_key);
    ASSERT_TRUE(again.refresh() && board.refresh());
    EXPECT_FALSE(again.is_closed() || board.is_closed());
    EXPECT_EQ(board.failure(), "");
}

} // namespace
} // namespace gpuq::sweeps
