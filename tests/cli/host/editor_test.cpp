// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/editor.h"

#include "cli/base/options.h"
#include "cli/commands/verbs.h"
#include "cli/host/host_call.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Editor, HasAnAddressForEachDirectory)
{
    EXPECT_EQ(editor_url("code", "gpuq-7", "/a b/%c?#"),
              "vscode://vscode-remote/ssh-remote+gpuq-7/a%20b/%25c%3F%23");
    EXPECT_EQ(editor_url("cursor", "gpuq-7", ""), "cursor://vscode-remote/ssh-remote+gpuq-7/");
    EXPECT_EQ(
        editor_url("jetbrains", "gpuq-7", "/a&b"),
        "jetbrains-gateway://connect#type=ssh&deploy=true&host=gpuq-7&port=22&projectPath=/a%26b");
    EXPECT_EQ(editor_url("emacs", "gpuq-7", ""), "");
}

TEST(Editor, CallsARunByNamesThatStayItsOwn)
{
    const RunKey key = RunKey::parse("20261120T131158.042Z-0f3a9c1e5b7d2468").value();
    EXPECT_THAT(editor_names("7", "train", key), ElementsAre("7", "train", key.text()));
    EXPECT_THAT(editor_names("7", "last", key), ElementsAre("7", key.text()));
}

TEST(Editor, RefusesInvalidArguments)
{
    const auto refusal = [](const std::vector<std::string>& arguments) {
        const auto parsed =
            parse_options(all_options(k_code_verb), k_code_verb.order, arguments).value();
        const auto editing = editing_from(parsed.options, parsed.operands);
        return editing ? "" : editing.error().text;
    };
    EXPECT_EQ(refusal({}), "");
    EXPECT_EQ(refusal({"7", "/data"}), "");
    EXPECT_THAT(refusal({"7", "data"}), HasSubstr("needs an absolute path"));
    EXPECT_THAT(refusal({"7", "/data", "x"}), HasSubstr("one run and one directory"));
    EXPECT_THAT(refusal({"--editor", "vi"}), HasSubstr("'vi' is not one of code, cursor"));
}

TEST(Editor, IsOpenedHereForARunOnAnotherHost)
{
    const auto call = [](const std::vector<std::string>& arguments) {
        return host_call(arguments, "login1", every_verb()).value();
    };
    const HostCall asked = call({"code", "--json", "--editor", "cursor", "train", "/data"});
    ASSERT_TRUE(asked.editing);
    EXPECT_EQ(*asked.editing, (Editing{"train", "/data", "cursor", "", false, true}));
    EXPECT_EQ(asked.run, "train");
    EXPECT_EQ(call({"code"}).run, "last");
    EXPECT_TRUE(call({"code", "--editor", "vi"}).refused);
    EXPECT_TRUE(call({"code", "--new", "train"}).unknown_options);
}

} // namespace
} // namespace gpuq::cli
