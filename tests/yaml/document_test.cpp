// SPDX-License-Identifier: GPL-2.0-or-later
#include "yaml/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gpuq::yaml {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Strings = std::vector<std::string>;

std::string reason(const std::string& text)
{
    const auto document = parse(text, "c.yaml");
    return document ? "accepted" : document.error().text;
}

TEST(Yaml, GivesTextsListsAndMapsWithTheirPlaces)
{
    const Node root = *parse("# ours\nstate_dir: /scratch/%u\ncontainer:\n  - apptainer\n"
                             "  - 'exec'\n  - \"--nv\"\nempty:\n",
                             "c.yaml");
    ASSERT_EQ(root.kind, Node::Kind::map);
    const Node* state_dir = root.find("state_dir");
    EXPECT_EQ(*text_of(*state_dir, "state_dir"), "/scratch/%u");
    EXPECT_EQ(state_dir->line, 2);
    EXPECT_EQ(state_dir->column, 12);
    EXPECT_EQ(*texts_of(*root.find("container"), "container"),
              (Strings{"apptainer", "exec", "--nv"}));
    EXPECT_EQ(root.find("empty")->kind, Node::Kind::nothing);
    EXPECT_EQ(root.find("nope"), nullptr);
}

TEST(Yaml, KeepsValuesAsTheyAreWritten)
{
    const Node root = *parse("a: 010\nb: yes\nc: 1e3\nd: \"x\\ty\"\n", "c.yaml");
    EXPECT_EQ(root.find("a")->text, "010");
    EXPECT_EQ(root.find("b")->text, "yes");
    EXPECT_EQ(root.find("c")->text, "1e3");
    EXPECT_EQ(root.find("d")->text, "x\ty");
}

TEST(Yaml, TakesAnEmptyFileForNothing)
{
    for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) {
        const auto root = parse(text, "c.yaml");
        ASSERT_TRUE(root) << root.error().text;
        EXPECT_EQ(root->kind, Node::Kind::nothing);
        EXPECT_TRUE(expect_map(*root, {"a"}));
    }
}

TEST(Yaml, RefusesWhatCouldMeanTwoThings)
{
    EXPECT_EQ(reason("a: 1\nb: 2\na: 3\n"), "c.yaml:3:1: duplicate 'a', first in line 1");
    EXPECT_EQ(reason("x:\n  a: 1\n  a: 2\n"), "c.yaml:3:3: duplicate 'a', first in line 2");
    EXPECT_EQ(reason("a: &x 1\n"), "c.yaml:1:4: anchors (&name) are not allowed");
    EXPECT_THAT(reason("a: *x\n"), StartsWith("c.yaml:1:"));
    EXPECT_THAT(reason("a: !!int 1\n"), HasSubstr("are not allowed"));
    EXPECT_THAT(reason("a: !mine {b: c}\n"), HasSubstr("are not allowed"));
    EXPECT_THAT(reason("a: !!seq [b]\n"), HasSubstr("are not allowed"));
    EXPECT_EQ(reason("[a, b]: c\n"), "c.yaml:1:1: a key must be a plain word");
    EXPECT_EQ(reason("~: c\n"), "c.yaml:1:1: a key must be a plain word");
    EXPECT_THAT(reason("a: 1\n---\nb: 2\n"), HasSubstr("a second document is not allowed"));
}

TEST(Yaml, SaysWhereASlipIs)
{
    EXPECT_THAT(reason("a: [1, 2\n"), StartsWith("c.yaml:"));
    EXPECT_EQ(reason("é: 'x\n"), "c.yaml:1:5: this quote is never closed");
    EXPECT_EQ(reason("a: 'it''s\n"), "c.yaml:1:4: this quote is never closed");
    EXPECT_EQ(reason("b: 1\na: \"x\\\"\n"), "c.yaml:2:4: this quote is never closed");
    EXPECT_EQ(reason("a: 'it''s'\nb: \"\\\"\"\n"), "accepted");
    EXPECT_THAT(reason("a: b: c\n"), StartsWith("c.yaml:1:"));
    EXPECT_EQ(reason("a: 1\n\tb: 2\n"), "c.yaml:2:1: a tab: indent lines with spaces only");
    EXPECT_EQ(reason("q:\n  x: 1\n  \ty: 2\n"), "c.yaml:3:1: a tab: indent lines with spaces only");
    EXPECT_THAT(reason("a: {b: 1\nc: 2\n"), HasSubstr("a '{' is not closed"));
    EXPECT_THAT(reason("a: [b, c\nd: 2\n"), HasSubstr("a '[' is not closed"));
    EXPECT_THAT(reason("p: {nodes: gpu[1-4]}\n"), HasSubstr("quote a text that contains [ ]"));
    EXPECT_THAT(reason("a:\n  b: 1\n c: 2\n"), HasSubstr("indented unlike its neighbours"));
    EXPECT_THAT(reason("a: b: c\n"), HasSubstr("put each name on its own line"));
    EXPECT_THAT(reason("a: @x\n"), HasSubstr("quote the text"));
    EXPECT_THAT(reason("{a: 1"), StartsWith("c.yaml:"));
}

TEST(Yaml, TakesUtf8Alone)
{
    EXPECT_EQ(reason("# d\xc3\xa9\na: \"\xc3\xa9\"\r\n"), "accepted");
    EXPECT_EQ(reason("# x\na: d\xe9j\xe0\n"),
              "c.yaml:2:5: the byte 0xe9 is not UTF-8: save the file in UTF-8");
    EXPECT_EQ(reason("# only a comment \xe9\n"),
              "c.yaml:1:18: the byte 0xe9 is not UTF-8: save the file in UTF-8");
    const std::string in_16 = {'a', '\0', ':', '\0', ' ', '\0', '1', '\0', '\n', '\0'};
    EXPECT_EQ(reason("\xff\xfe" + in_16), "c.yaml:1:1: the byte 0xff is not UTF-8: save the file "
                                          "in UTF-8, it seems to be in UTF-16");
    EXPECT_EQ(reason(in_16), "c.yaml:1:2: the byte 0x00 is not UTF-8: save the file in UTF-8, it "
                             "seems to be in UTF-16");
    EXPECT_EQ(reason("a: x\x1b[2J\n"), "c.yaml:1:5: control character 0x1b is not allowed");
}

TEST(Yaml, MayBeginWithAByteOrderMark)
{
    const auto root = parse("\xef\xbb\xbf# x\nb: 'c'\n", "c.yaml");
    ASSERT_TRUE(root) << root.error().text;
    EXPECT_EQ(root->find("b")->text, "c");
    EXPECT_EQ(reason("\xef\xbb\xbf"
                     "a: 'b\n"),
              "c.yaml:1:4: this quote is never closed");
}

TEST(Yaml, RefusesWhatIsTooDeepOrTooLarge)
{
    EXPECT_THAT(reason(std::string(33, '[') + std::string(33, ']')), HasSubstr("deeper than 32"));
    EXPECT_EQ(reason(std::string(32, '[') + std::string(32, ']')), "accepted");
    EXPECT_THAT(reason(std::string(100000, '[')), HasSubstr("deeper than 32"));
    EXPECT_THAT(reason(std::string(100000, '{')), StartsWith("c.yaml:"));
    EXPECT_EQ(reason("a: " + std::string(k_most_bytes, 'x')), "c.yaml: larger than 1 MiB");
}

TEST(Yaml, NamesTheNearestNameThatExists)
{
    const Node root = *parse("state_dir: x\nstatedir: y\n", "c.yaml");
    EXPECT_EQ(expect_map(root, {"state_dir", "container"}).error().text,
              "c.yaml:2:1: unknown name 'statedir' (did you mean 'state_dir'?); there are: "
              "state_dir, container");
    EXPECT_EQ(expect_map(*parse("- a\n", "c.yaml"), {"a"}).error().text,
              "c.yaml:1:1: expected `name: value` lines");
}

TEST(Yaml, WantsTheRightKindOfValue)
{
    const Node root = *parse("a: [x]\nb: []\nc: x\nd: [[x]]\ne:\n", "c.yaml");
    EXPECT_EQ(text_of(*root.find("a"), "a").error().text, "c.yaml:1:4: a must be a single value");
    EXPECT_FALSE(text_of(*root.find("e"), "e"));
    EXPECT_FALSE(texts_of(*root.find("b"), "b"));
    EXPECT_EQ(texts_of(*root.find("c"), "c").error().text,
              "c.yaml:3:4: c must be a list of words: [a, b]");
    EXPECT_EQ(texts_of(*root.find("d"), "d").error().text,
              "c.yaml:4:5: each word of d must be a single value");
}

TEST(Yaml, SurvivesAnyBytes)
{
    std::mt19937 random(7);
    const std::string spice = "[]{}:,-?!&*|>'\"#%@\n  \tab1~\\\x00\xff";
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        for (auto i = random() % 40; i > 0; --i) {
            text += spice[random() % spice.size()];
        }
        const auto document = parse(text, "c.yaml");
        if (!document) {
            ASSERT_THAT(document.error().text, StartsWith("c.yaml:"));
        }
    }
}

} // namespace
} // namespace gpuq::yaml
