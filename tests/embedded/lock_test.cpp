// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/directory.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <string>

namespace gpuq::embedded {
namespace {

TEST(Lock, IsOnTheFileThatItsPathNames)
{
    std::string dir = testing::TempDir() + "gpuq-lock-XXXXXX";
    ASSERT_NE(mkdtemp(dir.data()), nullptr);
    const Places places{dir, {}};
    std::optional<Lock> first(std::move(*Lock::take(places)));
    auto second = std::async(std::launch::async, [&] {
        const auto lock = Lock::take(places);
        return lock && std::filesystem::exists(places.lock_file());
    });
    EXPECT_EQ(second.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
    std::filesystem::remove(places.lock_file()); // as `down --purge` does while it holds the lock
    first.reset();
    EXPECT_TRUE(second.get());
    std::filesystem::remove_all(dir);
}

} // namespace
} // namespace gpuq::embedded
