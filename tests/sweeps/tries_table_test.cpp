// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/tries_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TriesTable table_of(std::string_view text)
{
    const auto table = parse_tries(text, "tries");
    EXPECT_TRUE(table) << (table ? "" : table.error().text);
    return table ? *table : TriesTable{};
}

std::string table_error(std::string_view text)
{
    const auto table = parse_tries(text, "tries");
    return table ? "accepted" : table.error().text;
}

TEST(TriesTable, ReadsCsv)
{
    const auto table =
        table_of("lr,note\r\n1e-4,\"a, \"\"b\"\"\"\r\n\r\n1e-3,\"two\nlines\"\n5,\n");
    EXPECT_THAT(table.names, ElementsAre("lr", "note"));
    EXPECT_THAT(table.tries, ElementsAre(Values{"1e-4", "a, \"b\""}, Values{"1e-3", "two\nlines"},
                                         Values{"5", ""}));
}

TEST(TriesTable, SkipsAByteOrderMark)
{
    EXPECT_THAT(table_of("\xef\xbb\xbflr\n1\n").names, ElementsAre("lr"));
    EXPECT_THAT(table_of("\xef\xbb\xbf{\"lr\": 1}\n").names, ElementsAre("lr"));
}

TEST(TriesTable, HasAnEmptyValueIfItIsQuoted)
{
    EXPECT_THAT(table_of("a\n\"\"\n\n1\n").tries, ElementsAre(Values{""}, Values{"1"}));
}

TEST(TriesTable, ReadsJsonLines)
{
    const auto table = table_of("{\"lr\": 1e-4, \"act\": \"relu\", \"amp\": true}\n\n"
                                "{\"amp\": false, \"act\": \"gelu\", \"lr\": 3}\n");
    EXPECT_THAT(table.names, ElementsAre("lr", "act", "amp"));
    EXPECT_THAT(table.tries,
                ElementsAre(Values{"1e-4", "relu", "true"}, Values{"3", "gelu", "false"}));
}

TEST(TriesTable, KeepsTheSpellingOfNumbers)
{
    EXPECT_THAT(
        table_of("{\"a\": 1E-4, \"b\": 0.10, \"c\": -7, \"d\": 18446744073709551616}\n").tries,
        ElementsAre(Values{"1E-4", "0.10", "-7", "18446744073709551616"}));
}

TEST(TriesTable, NamesTheLineOfAnError)
{
    EXPECT_THAT(table_error(""), HasSubstr("tries:1: no tries"));
    EXPECT_THAT(table_error("lr\n"), HasSubstr("tries: no tries in it"));
    EXPECT_THAT(table_error("lr,lr\n1,2\n"), HasSubstr("tries:1: 'lr' is there twice"));
    EXPECT_THAT(table_error("learning rate\n1\n"), HasSubstr("tries:1: 'learning rate'"));
    EXPECT_THAT(table_error("a,b\n1,2\n3\n"), HasSubstr("tries:3: 1 values, but 2 names"));
    EXPECT_THAT(table_error("a,b\n\"1\n2\",3\n4\n"), HasSubstr("tries:4: 1 values"));
    EXPECT_THAT(table_error("a\n\"1\n2\n"), HasSubstr("tries:2: a quote is not closed"));
    EXPECT_THAT(table_error("a\n\"1\"2\n"), HasSubstr("tries:2: text after a closing quote"));
    EXPECT_THAT(table_error("{\"a\": 1}\n{\"b\": 1}\n"), HasSubstr("tries:2: 'a' is missing"));
    EXPECT_THAT(table_error("{\"a\": 1}\n{\"a\": 1, \"b\": 2}\n"),
                HasSubstr("tries:2: other names"));
    EXPECT_THAT(table_error("{}\n"), HasSubstr("tries:1: no parameters in it"));
    EXPECT_THAT(table_error("[{\"a\": 1}]\n"), HasSubstr("tries:1: a JSON array"));
    EXPECT_THAT(table_error("a\n1\n" + std::string(4097, 'x') + "\n"),
                HasSubstr("tries:3: a value is longer than 4096 bytes"));
    EXPECT_THAT(table_error("{\"a\": [1]}\n"), HasSubstr("tries:1: 'a' is neither"));
    EXPECT_THAT(table_error("{\"a\": {\"b\": 1}}\n"), HasSubstr("tries:1: 'a' is neither"));
    EXPECT_THAT(table_error("{\"a\": null}\n"), HasSubstr("tries:1: 'a' is neither"));
    EXPECT_THAT(table_error("{\"a\": 1, \"a\": 2}\n"), HasSubstr("tries:1: 'a' is there twice"));
    EXPECT_THAT(table_error("{\"a\": 1}\n{\"a\": 1} 2\n"), HasSubstr("tries:2: not a JSON"));
    EXPECT_THAT(table_error("{\"a\": 1}\nrubbish\n"), HasSubstr("tries:2: not a JSON object"));
    EXPECT_THAT(table_error(std::string_view("a\n\0\n", 4)),
                HasSubstr("tries:2: a value has a zero"));
}

} // namespace
} // namespace gpuq::sweeps
