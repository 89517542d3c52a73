// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/json_text.h"

#include "report/json.h"

#include <gtest/gtest.h>

namespace gpuq::report {
namespace {

TEST(TextMember, IsReadFromADocumentOfAnotherGpuq)
{
    const std::string document = json_document({{"key", "größe"}, {"job", 4711}});
    EXPECT_EQ(text_member(document, "key"), "größe");
    EXPECT_EQ(text_member(document, "job"), std::nullopt) << "a number";
    EXPECT_EQ(text_member(document, "name"), std::nullopt);
    for (const char* text :
         {"", "null", "[\"key\"]", "{\"key\"", "its output: gpuq logs -f 4711"}) {
        EXPECT_EQ(text_member(text, "key"), std::nullopt) << text;
    }
}

} // namespace
} // namespace gpuq::report
