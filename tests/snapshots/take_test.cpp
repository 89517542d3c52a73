// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/take.h"

#include "fakes/memory_store.h"
#include "snapshots/work_tree.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace gpuq::snapshots {
namespace {

using testing::WorkTree;

struct TakeTest : ::testing::Test {
    Taken taken()
    {
        auto result = take(store, tree.path(), {}, false);
        EXPECT_TRUE(result) << (result ? "" : result.error().text);
        return result ? *std::move(result) : Taken{};
    }

    std::string content(const Taken& snapshot, const std::string& path)
    {
        const Entry* entry = find(snapshot.manifest, path);
        return entry != nullptr ? content_of(store, *entry).value() : "no such file";
    }

    fakes::MemoryStore store;
    WorkTree tree;
};

TEST_F(TakeTest, KeepsTheContentOfThatMoment)
{
    tree.write("train.py", "one");
    const Taken first = taken();
    tree.write("train.py", "two");
    const Taken second = taken();
    EXPECT_NE(first.id, second.id);
    EXPECT_EQ(content(first, "train.py"), "one");
    EXPECT_EQ(content(second, "train.py"), "two");
    EXPECT_EQ(read(store, first.id)->entries, first.manifest.entries);
}

TEST_F(TakeTest, StoresAContentOnce)
{
    tree.write("a.py", "same");
    tree.write("b.py", "same");
    EXPECT_EQ(taken().written, 4U);
    tree.write("c.py", "more");
    const Taken second = taken();
    EXPECT_EQ(second.written, 4U);
    EXPECT_EQ(content(second, "a.py"), "same");
    EXPECT_EQ(taken().id, second.id);
}

TEST_F(TakeTest, NoticesAChangeOfTheSameSizeWithinATick)
{
    tree.write("a.py", "1");
    (void)taken();
    const auto then = std::filesystem::last_write_time(tree.path() + "/a.py");
    tree.write("a.py", "2");
    std::filesystem::last_write_time(tree.path() + "/a.py", then);
    EXPECT_EQ(content(taken(), "a.py"), "2");
}

TEST_F(TakeTest, ReadsAFileAgainThatIsBeingWritten)
{
    using namespace std::chrono_literals;
    constexpr int k_attempts = 10, k_pieces = 40;
    constexpr std::size_t k_piece = 10'000;
    int complete = 0;
    for (int attempt = 0; attempt < k_attempts; ++attempt) {
        const char letter = static_cast<char>('a' + attempt);
        tree.write("train.py", std::string(k_pieces * k_piece, '#'));
        std::atomic<bool> has_begun = false;
        std::thread writer([&] {
            std::fstream file(tree.path() + "/train.py", std::ios::in | std::ios::out);
            for (int piece = 0; piece < k_pieces; ++piece) {
                file << std::string(k_piece, letter) << std::flush;
                has_begun = true;
                std::this_thread::sleep_for(2ms);
            }
        });
        while (!has_begun) {
            std::this_thread::yield();
        }
        const Taken snapshot = taken();
        writer.join();
        complete += content(snapshot, "train.py") == std::string(k_pieces * k_piece, letter);
    }
    // On a busy machine, the writer may pause for so long that the file looks complete.
    EXPECT_GE(complete, k_attempts / 2);
}

/// A store that counts the directories that are listed: PosixStore removes abandoned files then.
class ListedStore : public fakes::MemoryStore {
public:
    std::vector<std::string> listed;
    Result<std::vector<std::string>> list(const std::string& path) override
    {
        listed.push_back(path);
        return MemoryStore::list(path);
    }
};

TEST_F(TakeTest, RemovesAbandonedPacksBeforeItStoresOne)
{
    ListedStore listed;
    tree.write("a.py", "1");
    ASSERT_TRUE(take(listed, tree.path(), {}, false));
    EXPECT_THAT(listed.listed, ::testing::ElementsAre(k_packs));
    ASSERT_TRUE(take(listed, tree.path(), {}, false));
    EXPECT_EQ(listed.listed.size(), 1U) << "nothing is stored";
}

TEST_F(TakeTest, DoesNotFollowADirectoryThatHasBecomeALink)
{
    tree.git({"init", "-q"});
    tree.write("lib/a.py", "ours");
    tree.git({"add", "."});
    const WorkTree other;
    other.write("a.py", "theirs");
    tree.remove("lib");
    std::filesystem::create_symlink(other.path(), tree.path() + "/lib");
    EXPECT_EQ(content(taken(), "lib/a.py"), "no such file");
}

TEST_F(TakeTest, DetectsDamage)
{
    tree.write("a.py", "1");
    const Taken snapshot = taken();
    ASSERT_TRUE(store.write(pack_path(snapshot.manifest.entries.front().pack), "2"));
    const auto read = content_of(store, snapshot.manifest.entries.front());
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().text, ::testing::HasSubstr("damaged"));
}

TEST_F(TakeTest, RefusesAManifestThatLeadsOutOfItsRoot)
{
    tree.write("a.py", "1");
    Manifest manifest = taken().manifest;
    for (const char* path : {"../a.py", "/a.py", "a/../../b", "", "a//b"}) {
        manifest.entries.front().path = path;
        EXPECT_FALSE(manifest_from_text(to_text(manifest))) << path;
    }
    manifest.entries.front().path = "b.py";
    EXPECT_EQ(manifest_from_text(to_text(manifest)).value(), manifest);
}

TEST_F(TakeTest, RemovesNothingIfASnapshotCannotBeRead)
{
    using namespace std::chrono_literals;
    const Time begin{1'000'000'000s};
    tree.write("a.py", "first");
    const Taken first = taken();
    tree.write("a.py", "second");
    (void)taken();
    ASSERT_TRUE(store.write(tree_path(first.id), "gpuq snapshot 2\n")); // of a newer gpuq
    EXPECT_FALSE(remove_unused(store, {first.id}, begin));
    EXPECT_FALSE(remove_unused(store, {first.id}, begin + 2h));
    EXPECT_EQ(content(first, "a.py"), "first");
}

TEST_F(TakeTest, RemovesWhatHasBeenUnusedForAnHour)
{
    using namespace std::chrono_literals;
    const Time begin{1'000'000'000s};
    tree.write("a.py", "first");
    const Taken first = taken();
    tree.write("a.py", "second");
    const Taken second = taken();
    tree.write("a.py", "third");
    const Taken third = taken();
    ASSERT_TRUE(remove_unused(store, {second.id}, begin));
    EXPECT_EQ(remove_unused(store, {second.id}, begin + 59min).value(), 0U);
    EXPECT_TRUE(read(store, first.id));
    EXPECT_GT(remove_unused(store, {second.id}, begin + 60min).value(), 0U);
    EXPECT_FALSE(read(store, first.id));
    EXPECT_EQ(remove_unused(store, {second.id}, begin + 120min).value(), 0U);
    EXPECT_EQ(remove_unused(store, {second.id}, begin + 180min).value(), 5U) << "its pack";
    EXPECT_EQ(content(second, "a.py"), "second");
    EXPECT_EQ(content(third, "a.py"), "third") << "the newest one";
}

TEST_F(TakeTest, RemovesTheNewestSnapshotOfADirectoryThatNoLongerExists)
{
    using namespace std::chrono_literals;
    const Time begin{1'000'000'000s};
    tree.write("a.py", "here");
    const Taken here = taken();
    {
        const WorkTree other;
        other.write("a.py", "gone");
        ASSERT_TRUE(take(store, other.path(), {}, false));
    }
    ASSERT_TRUE(remove_unused(store, {}, begin));
    ASSERT_TRUE(remove_unused(store, {}, begin + 1h));
    ASSERT_TRUE(remove_unused(store, {}, begin + 2h));
    ASSERT_TRUE(remove_unused(store, {}, begin + 3h));
    EXPECT_EQ(store.list("snapshots/latest")->size(), 1U);
    EXPECT_EQ(store.list(k_trees)->size(), 1U);
    EXPECT_EQ(store.list(k_packs)->size(), 1U);
    EXPECT_EQ(content(here, "a.py"), "here");
}

TEST_F(TakeTest, AFileThatCannotBeReadIsCounted)
{
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root can read every file";
    }
    tree.write("a.py", "1");
    std::filesystem::permissions(tree.path() + "/a.py", std::filesystem::perms::none);
    EXPECT_EQ(taken().manifest.left_out, 1U);
}

/// A disk that is full from one write on.
class FillingStore : public fakes::MemoryStore {
public:
    int writes_left = 1000;
    Result<void> write(const std::string& path, std::string_view bytes) override
    {
        full = full || writes_left-- == 0;
        return MemoryStore::write(path, bytes);
    }
};

TEST_F(TakeTest, OnAFullDiskNothingRefersToAnIncompleteSnapshot)
{
    int failures = 0;
    for (int writes = 0;; ++writes) {
        FillingStore filling;
        tree.write("a.py", "before");
        const auto before = take(filling, tree.path(), {}, false);
        ASSERT_TRUE(before);
        tree.write("a.py", "after");
        filling.writes_left = writes;
        const auto failed = take(filling, tree.path(), {}, false);
        if (failed) {
            break;
        }
        ++failures;
        EXPECT_EQ(failed.error().kind, Error::Kind::io);
        EXPECT_THAT(failed.error().text, ::testing::HasSubstr("No space left on device"));
        filling.full = false;
        filling.writes_left = 1000;
        const auto after = take(filling, tree.path(), {}, false);
        ASSERT_TRUE(after);
        for (const auto& [snapshot, text] :
             {std::pair(&*before, "before"), std::pair(&*after, "after")}) {
            const auto manifest = read(filling, snapshot->id);
            ASSERT_TRUE(manifest);
            EXPECT_EQ(content_of(filling, manifest->entries.front()).value(), text);
        }
    }
    EXPECT_EQ(failures, 3) << "pack, tree, latest";
}

} // namespace
} // namespace gpuq::snapshots
