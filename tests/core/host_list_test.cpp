// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/host_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using testing::HasSubstr;
using Hosts = std::vector<std::string>;

std::string refusal(std::string_view text)
{
    const auto hosts = expand_hosts(text);
    return hosts ? "accepted" : hosts.error().text;
}

TEST(HostList, ExpandsNamesRangesAndLists)
{
    EXPECT_EQ(*expand_hosts("gpu01"), (Hosts{"gpu01"}));
    EXPECT_EQ(*expand_hosts("a,b-1"), (Hosts{"a", "b-1"}));
    EXPECT_EQ(*expand_hosts("gpu[08-10,12]-ib,x"),
              (Hosts{"gpu08-ib", "gpu09-ib", "gpu10-ib", "gpu12-ib", "x"}));
    EXPECT_EQ(*expand_hosts("n[9-11]"), (Hosts{"n9", "n10", "n11"}));
}

TEST(HostList, SaysWhatIsWrong)
{
    EXPECT_THAT(refusal(""), HasSubstr("letters, digits"));
    EXPECT_THAT(refusal("a,,b"), HasSubstr("letters, digits"));
    EXPECT_THAT(refusal("gpu[1-2"), HasSubstr("not closed"));
    EXPECT_THAT(refusal("gpu]1["), HasSubstr("not closed"));
    EXPECT_THAT(refusal("gpu[1-x]"), HasSubstr("nor a range"));
    EXPECT_THAT(refusal("gpu[]"), HasSubstr("nor a range"));
    EXPECT_THAT(refusal("gpu[4-1]"), HasSubstr("backwards"));
    EXPECT_THAT(refusal("gpu[0-999999999]"), HasSubstr("more than"));
    EXPECT_THAT(refusal("gpu[18446744073709551615]"), HasSubstr("more than 9 digits"));
    EXPECT_THAT(refusal("gpu[1-2][3-4]"), HasSubstr("one bracket"));
    EXPECT_THAT(refusal("a;rm -rf"), HasSubstr("letters, digits"));
    EXPECT_THAT(refusal("n[1-3],n2"), HasSubstr("n2 is listed twice"));
}

TEST(HostList, ManyRangesDoNotAddUpBeyondTheLimit)
{
    std::string text = "n[0-60000]";
    for (int i = 0; i < 4; ++i) {
        text += fmt::format(",m{}[0-60000]", i);
    }
    EXPECT_THAT(refusal(text), HasSubstr("more than"));
}

TEST(HostList, WritesHostsAsAList)
{
    EXPECT_EQ(host_list({}), "");
    EXPECT_EQ(host_list({"gpu01"}), "gpu01");
    EXPECT_EQ(host_list({"gpu01", "gpu02", "gpu04"}), "gpu[01-02,04]");
    EXPECT_EQ(host_list({"n9", "n10", "n011"}), "n[9-10,011]");
    EXPECT_EQ(host_list({"lab", "gpu1", "gpu2", "visu1", "7"}), "lab,gpu[1-2],visu1,7");
}

TEST(HostList, AListItselfWroteIsReadBack)
{
    for (const char* text :
         {"gpu[08-10,12],x", "a,b-1", "n[98-102]", "n[2,1,3-4]", "a1-ib,a2-ib"}) {
        const auto hosts = *expand_hosts(text);
        EXPECT_EQ(*expand_hosts(host_list(hosts)), hosts) << text;
    }
}

} // namespace
} // namespace gpuq
