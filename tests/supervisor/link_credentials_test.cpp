// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/link_credentials.h"

#include "posix/secret_files.h"
#include "supervisor/external.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr unsigned k_nobody_else = 4'000'000'017U;

std::string folder_of(PosixSecretFiles& files, unsigned char number, bool old)
{
    const auto key = RunKey::make(Time{1s}, {number, 2, 3, 4, 5, 6, 7, 8});
    const std::string folder = node_credential_folder(k_nobody_else, key, LinkNumber{1});
    EXPECT_TRUE(files.make_folder(folder));
    EXPECT_TRUE(files.write(folder, k_node_cache, "secret"));
    if (old) {
        const timespec times[2] = {{1, 0}, {1, 0}};
        ::utimensat(AT_FDCWD, folder.c_str(), times, 0);
    }
    return folder;
}

TEST(LinkCredentials, OfTheDeadAreSweptAndOfTheLivingAreNot)
{
    PosixSecretFiles files;
    const std::string dead = folder_of(files, 1, true);
    const std::string alive = folder_of(files, 2, true);
    const std::string young = folder_of(files, 3, false);
    const Descriptor mark(::open(alive.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::flock(mark.get(), LOCK_EX), 0);
    sweep_node(files, k_nobody_else);
    EXPECT_FALSE(std::filesystem::exists(dead));
    EXPECT_TRUE(files.read(alive, k_node_cache));
    EXPECT_TRUE(files.read(young, k_node_cache));
    for (const std::string& folder : {alive, young}) {
        EXPECT_TRUE(files.remove_folder(folder));
    }
}

External::Ended ended(External::Plan plan)
{
    auto external = External::start(plan);
    while (external) {
        if (auto answer = external->look()) {
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
    EXPECT_EQ(one_line(answer.words), "b no");
    EXPECT_EQ(ended({{"/nowhere/kinit"}, {}}).status, 127);
}

TEST(External, EndsAProgramThatTakesTooLong)
{
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = ended({{"/bin/sleep", "60"}, {}, 100ms});
    EXPECT_FALSE(answer.in_time);
    EXPECT_EQ(answer.status, 128 + 9);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(External, FindsProgramsByAbsoluteFoldersOnly)
{
    EXPECT_EQ(found_in_path("bin::/nowhere:/bin", "sh"), "/bin/sh");
    EXPECT_EQ(found_in_path("bin:.:", "sh"), "");
    EXPECT_EQ(found_in_path("", "sh"), "");
}

} // namespace
} // namespace gpuq::supervisor
