// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/leftovers.h"

#include "io/private_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

namespace fs = std::filesystem;

TEST(Leftovers, GoAndWhatIsInUseStays)
{
    auto dead = make_private_dir("test");
    const auto alive = make_private_dir("test");
    ASSERT_TRUE(dead && alive) << dead.error().text;
    const fs::path outside = fs::path(alive->path) / "outside";
    fs::create_directories(fs::path(dead->path) / "a/b");
    fs::create_directory(outside);
    std::ofstream(outside / "file") << "kept";
    fs::create_directory_symlink(outside, fs::path(dead->path) / "a/link");
    dead->lock.reset(); // as if its process was killed
    sweep_leftovers();
    EXPECT_FALSE(fs::exists(dead->path));
    EXPECT_TRUE(fs::exists(outside / "file"));
    fs::remove_all(alive->path);
}

TEST(Leftovers, ALinkInTheNameOfOneIsNotFollowed)
{
    const auto alive = make_private_dir("test");
    ASSERT_TRUE(alive);
    const std::string link = private_dir_prefix("test", ::geteuid()) + "link";
    const fs::path target = fs::path(alive->path) / "target";
    fs::create_directory(target);
    fs::create_directory_symlink(target, link);
    sweep_leftovers();
    EXPECT_TRUE(fs::exists(target));
    fs::remove(link);
    fs::remove_all(alive->path);
}

TEST(Leftovers, OfAnotherUserStay)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root may be somebody else";
    }
    const auto other = make_private_dir("test");
    ASSERT_TRUE(other);
    ASSERT_EQ(::chown(other->path.c_str(), 65534, 65534), 0);
    const_cast<Descriptor&>(other->lock).reset();
    sweep_leftovers();
    EXPECT_TRUE(fs::exists(other->path));
    fs::remove_all(other->path);
}

TEST(PrivateDir, OfAnotherUserOrOpenToOthersIsRefused)
{
    const std::string path = private_dir_prefix("test", ::geteuid()) + "taken";
    fs::remove_all(path);
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    const auto open = make_private_dir_at(path);
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().text, path + " is not a directory with mode 700");
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
        const auto other = make_private_dir_at(path);
        ASSERT_FALSE(other);
        EXPECT_EQ(other.error().kind, Error::Kind::denied);
        EXPECT_EQ(other.error().text, path + " belongs to user daemon (1)");
    }
    fs::remove_all(path);
}

TEST(PrivateDir, IsHeldByOneProcess)
{
    const std::string path = private_dir_prefix("test", ::geteuid()) + "held";
    const auto first = make_private_dir_at(path);
    ASSERT_TRUE(first) << first.error().text;
    const auto second = make_private_dir_at(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, Error::Kind::busy);
    fs::remove_all(path);
}

} // namespace
} // namespace gpuq
