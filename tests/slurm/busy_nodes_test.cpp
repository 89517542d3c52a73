// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/busy_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

using testing::ElementsAre;

TEST(BusyNodes, AreHeldByJobsThatMayRunPastTheBeginning)
{
    EXPECT_THAT(holding_past("2026-12-07T13:00", "9|ada|c1|NONE\n"
                                                 "12|ada|c1|2026-12-07T18:00:00\n"
                                                 "13|ben|c1|2026-12-07T13:00:00\n"
                                                 "14|ben|c[1-2]|2026-12-07T13:00:01\n"),
                ElementsAre(HoldingJob{"14", "ben", "c[1-2]", "2026-12-07T13:00:01"},
                            HoldingJob{"12", "ada", "c1", "2026-12-07T18:00:00"},
                            HoldingJob{"9", "ada", "c1", "NONE"}));
}

TEST(BusyNodes, SayWhoHoldsThemUntilWhenAndWhatToDo)
{
    EXPECT_EQ(
        way_out("dl", "2026-12-07T13:00",
                {{"14", "ben", "c[1-2]", "2026-12-07T13:00:01"},
                 {"12", "ada", "c1", "2026-12-07T18:00:00"}}),
        "job 14 of ben on c[1-2] may run until 2026-12-07T13:00:01; job 12 of ada on c1 may "
        "run until 2026-12-07T18:00:00, and dl is due to begin at 2026-12-07T13:00: apply again "
        "after 2026-12-07T18:00:00, let it begin at 2026-12-07T18:00:00, or end them with "
        "`scancel 14 12`");
    EXPECT_EQ(
        way_out("dl", "2026-12-07T13:00", {{"9", "ada", "c1", "NONE"}}),
        "job 9 of ada on c1 has no time limit, and dl is due to begin at 2026-12-07T13:00: end it "
        "with `scancel 9`");
    EXPECT_EQ(way_out("dl", "2026-12-07T13:00", {}),
              "the jobs on the nodes of dl have ended meanwhile: apply again");
}

} // namespace
} // namespace gpuq::slurm
