// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/keeper/link_credentials.h"

#include "supervisor/base/external.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <poll.h>
#include <sys/stat.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

Options options_of(unsigned char number)
{
    const std::filesystem::path state = "/nonexistent";
    Options options{.state_dir = state,
                    .key = RunKey::make(Time{1s}, {number, 2, 3, 4, 5, 6, 7, 8})};
    options.names = NodeNames("0f0102030405060708090a0b0c0d0e0f");
    return options;
}

TEST(LinkCredentials, AreInTheDirectoryThatIsOwn)
{
    const Options options = options_of(1);
    const auto paths = options.names.directories("krb5", ::geteuid(), options.key, options.link);
    EXPECT_EQ(node_credential_directory(options), "");
    const auto made = make_private_dir_at(paths[1]);
    ASSERT_TRUE(made);
    EXPECT_EQ(node_credential_directory(options), paths[1]);
    if (::geteuid() == 0) { // the first directory belongs to another user
        ASSERT_EQ(::mkdir(paths[0].c_str(), 0700), 0);
        ASSERT_EQ(::chown(paths[0].c_str(), 1, 1), 0);
        EXPECT_EQ(node_credential_directory(options), paths[1]);
        std::filesystem::remove(paths[0]);
    }
    std::filesystem::remove_all(paths[1]);
}

External::Ended ended(const External::Plan& plan)
{
    auto external = External::start(plan);
    while (external) {
        if (auto answer = external->try_finish()) {
            return *answer;
        }
        ::poll(nullptr, 0, 5);
    }
    return {};
}

TEST(External, TellsHowAProgramEndedAndWhatItSaid)
{
    const auto answer = ended({{"/bin/sh", "-c", "echo $A; echo no >&2; exit 3"}, {"A=b"}});
    EXPECT_EQ(answer.status, 3);
    EXPECT_TRUE(answer.in_time);
    EXPECT_EQ(one_line(answer.message), "b no");
    EXPECT_EQ(ended({{"/nowhere/kinit"}, {}}).status, 127);
}

TEST(External, EndsAProgramThatTakesTooLong)
{
    const auto answer = ended({{"/bin/sleep", "1000"}, {}, 100ms});
    EXPECT_FALSE(answer.in_time);
    EXPECT_EQ(answer.status, 128 + 9);
}

TEST(External, FindsProgramsByAbsoluteFoldersOnly)
{
    EXPECT_EQ(found_in_path("bin::/nowhere:/bin", "sh"), "/bin/sh");
    EXPECT_EQ(found_in_path("bin:.:", "sh"), "");
    EXPECT_EQ(found_in_path("", "sh"), "");
}

} // namespace
} // namespace gpuq::supervisor
