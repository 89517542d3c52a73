// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/python_json.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(JsonOfPython, HasNullForWhatJsonDoesNotKnow)
{
    EXPECT_EQ(json_of_python(R"({"NaN": NaN, "a\"NaN": [Infinity, -Infinity, -1]})"),
              R"({"NaN": null, "a\"NaN": [null, null, -1]})");
    EXPECT_EQ(json_of_python(""), "");
    EXPECT_EQ(json_of_python("\"\\"), "\"\\");
}

} // namespace
} // namespace gpuq
