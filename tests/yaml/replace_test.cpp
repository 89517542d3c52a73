// SPDX-License-Identifier: GPL-2.0-or-later
#include "yaml/replace.h"

#include "yaml/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gpuq::yaml {
namespace {

using testing::HasSubstr;

const std::string k_text = "# ours\n"
                           "pools:\n"
                           "  first: {nodes: 'gpu[01-03]', gpus: 4}   # few\n"
                           "  main:\n"
                           "    nodes: gpu[04-14]           # the rest\n"
                           "queues:\n"
                           "  q: {time: 2h, limits: {user: {gpus: 8}}} # tight\n";

std::string changed(std::vector<Replacement> replacements)
{
    auto text = with_replaced(k_text, "p.yaml", std::move(replacements));
    return text ? *text : text.error().text;
}

const Node& at(const Node& node, const std::vector<const char*>& path)
{
    const Node* now = &node;
    for (const char* key : path) {
        now = now->find(key);
    }
    return *now;
}

TEST(Replace, ChangesTheScalarAndKeepsEverythingElse)
{
    EXPECT_EQ(changed({}), k_text);
    EXPECT_EQ(changed({{7, 13, "30m"}, {3, 18, "gpu[01-04]"}, {5, 12, "gpu[05-14]"}}),
              "# ours\n"
              "pools:\n"
              "  first: {nodes: 'gpu[01-04]', gpus: 4}   # few\n"
              "  main:\n"
              "    nodes: gpu[05-14]           # the rest\n"
              "queues:\n"
              "  q: {time: 30m, limits: {user: {gpus: 8}}} # tight\n");
}

TEST(Replace, ACommentStaysInItsColumn)
{
    EXPECT_THAT(changed({{5, 12, "gpu04"}}), HasSubstr("nodes: gpu04                # the rest\n"));
    EXPECT_THAT(changed({{5, 12, "gpu[04-14,16,18,20-22]"}}),
                HasSubstr("nodes: gpu[04-14,16,18,20-22] # the rest\n"));
    EXPECT_THAT(changed({{3, 38, "16"}}), HasSubstr("gpus: 16}  # few\n"));
}

TEST(Replace, ATextThatLooksLikeACommentIsLeftAlone)
{
    EXPECT_EQ(*with_replaced("{a: 1, b: 'x   # y'}\n", "p", {{1, 5, "100"}}),
              "{a: 100, b: 'x   # y'}\n");
}

TEST(Replace, QuotesWhatNeedsQuotes)
{
    EXPECT_THAT(changed({{3, 38, "k80:2,p100:2"}}), HasSubstr("gpus: 'k80:2,p100:2'}"));
    EXPECT_THAT(changed({{7, 39, "9"}}), HasSubstr("gpus: 9}"));
}

TEST(Replace, RefusesWhatItCanNotReplace)
{
    EXPECT_THAT(changed({{7, 12, "3h"}}), HasSubstr("p.yaml:7:12: no value is here"));
    EXPECT_THAT(changed({{99, 1, "3h"}}), HasSubstr("no value is here"));
    EXPECT_THAT(changed({{7, 13, "3h}, x: {y: 1"}}), HasSubstr("can not be replaced"));
    EXPECT_THAT(with_replaced("a: \"1\\x32\"\n", "p", {{1, 4, "3"}}).error().text,
                HasSubstr("without escapes"));
    EXPECT_THAT(with_replaced("a: one\n  two\n", "p", {{1, 4, "3"}}).error().text,
                HasSubstr("on one line"));
    EXPECT_FALSE(with_replaced("a: [", "p", {}));
}

TEST(Replace, WhatIsReadBackIsTheNewValue)
{
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
        const std::string time = std::to_string(random() % 100000 + 1) + "m";
        const std::string nodes = "gpu[01-" + std::to_string(random() % 90 + 10) + "]";
        const std::string gpus = std::to_string(random() % 1000);
        const std::string text =
            changed({{7, 13, time}, {3, 18, nodes}, {5, 12, nodes}, {7, 39, gpus}});
        const auto root = parse(text, "p.yaml");
        ASSERT_TRUE(root) << root.error().text << text;
        EXPECT_EQ(at(*root, {"queues", "q", "time"}).text, time);
        EXPECT_EQ(at(*root, {"pools", "first", "nodes"}).text, nodes);
        EXPECT_EQ(at(*root, {"pools", "main", "nodes"}).text, nodes);
        EXPECT_EQ(at(*root, {"queues", "q", "limits", "user", "gpus"}).text, gpus);
        EXPECT_EQ(at(*root, {"pools", "first", "gpus"}).text, "4");
        EXPECT_THAT(text, testing::AllOf(HasSubstr("# ours\n"), HasSubstr(" # few\n"),
                                         HasSubstr(" # the rest\n"), HasSubstr(" # tight\n")));
    }
}

} // namespace
} // namespace gpuq::yaml
