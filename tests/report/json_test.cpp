// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpuq::report {
namespace {

using namespace std::chrono_literals;

TEST(JsonDocument, SaysItsSchemaFirstAndKeepsTheOrder)
{
    const Json run = Json::object({{"name", "train"},
                                   {"job", JobId{42}},
                                   {"gpus", 1},
                                   {"memory", std::uint64_t{1} << 40},
                                   {"progress", 0.5},
                                   {"active", true},
                                   {"walltime", std::chrono::minutes{2}},
                                   {"submitted_at", Time{1500ms}},
                                   {"started_at", std::optional<Time>{}},
                                   {"words", Json::array(std::vector<std::string>{"a", "b"})},
                                   {"links", Json::array()}});
    EXPECT_EQ(json_document({{"runs", Json::array({run})}}), R"({
  "schema": 1,
  "runs": [
    {
      "name": "train",
      "job": 42,
      "gpus": 1,
      "memory": 1099511627776,
      "progress": 0.5,
      "active": true,
      "walltime": 120,
      "submitted_at": "1970-01-01T00:00:01.500000Z",
      "started_at": null,
      "words": [
        "a",
        "b"
      ],
      "links": []
    }
  ]
}
)");
}

TEST(JsonDocument, IsAsciiWhateverTheNames)
{
    const std::string text = json_document({{"name", "\033[2J\x7f\u009b\u202e最\xff\n"}});
    EXPECT_EQ(text, "{\n  \"schema\": 1,\n  \"name\": "
                    "\"\\u001b[2J\\u007f\\u009b\\u202e\\u6700\\ufffd\\n\"\n}\n");
}

TEST(JsonDocument, WritesNullForANumberThatIsNone)
{
    EXPECT_EQ(json_document({{"share", std::numeric_limits<double>::quiet_NaN()}}),
              "{\n  \"schema\": 1,\n  \"share\": null\n}\n");
}

} // namespace
} // namespace gpuq::report
