// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/top_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::StartsWith;

TEST(TopPicture, DoesNotKnowWhoWaitsBeforeTheFirstWholeLook)
{
    const Time now{1'795'000'000s};
    TopFound found;
    PoolUse use;
    use.pool.model = "k80";
    use.pool.total = 4;
    use.pool.free = 2;
    use.pool.in_use = 2;
    use.pool.most_on_one_node = 2;
    found.overview.pools = {use};
    EXPECT_EQ(top_picture(found, now).answer, "");
    found.overview.at = now;
    EXPECT_THAT(top_picture(found, now).answer, StartsWith("yes: 2 k80"));
    EXPECT_THAT(top_picture(found, now).answer, EndsWith("; who else waits is not known yet"));
    found.overview.whole_at = now;
    found.overview.waiting = WaitingLine{3, 4};
    EXPECT_THAT(top_picture(found, now).answer, StartsWith("perhaps: 2 k80"));
    EXPECT_THAT(top_picture(found, now).answer, EndsWith("; 3 jobs wait for 4 GPUs"));
}

} // namespace
} // namespace gpuq::cli
