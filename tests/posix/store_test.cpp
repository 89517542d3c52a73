// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/store.h"

#include "contract/store_contract.h"
#include "fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace gpuq {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A temporary directory, removed by the destructor.
class Directory {
public:
    Directory()
    {
        std::string name = fs::temp_directory_path() / "gpuq-store-XXXXXX";
        m_path = ::mkdtemp(name.data());
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    ~Directory() { fs::remove_all(m_path); }
    std::string path() const { return m_path; }

private:
    fs::path m_path;
};

/// The real store in a temporary directory.
class StoreInDirectory {
public:
    Store& store() { return *m_store; }

private:
    Directory m_directory;
    std::unique_ptr<PosixStore> m_store = PosixStore::open(m_directory.path() + "/state").value();
};

std::shared_ptr<Store> make_posix()
{
    const auto owner = std::make_shared<StoreInDirectory>();
    return std::shared_ptr<Store>(owner, &owner->store());
}

std::shared_ptr<Store> make_memory()
{
    return std::make_shared<fakes::MemoryStore>();
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract,
                         ::testing::Values(StoreMaker{"posix", make_posix},
                                           StoreMaker{"memory", make_memory}),
                         [](const auto& maker) { return maker.param.name; });

mode_t mode_of(const std::string& path)
{
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
}

TEST(PosixStore, MakesItsFolderAndParentsForTheOwnerAlone)
{
    const Directory directory;
    const std::string root = directory.path() + "/.local/state/gpuq";
    const auto store = PosixStore::open(root + "/").value();
    EXPECT_EQ(store->root(), root);
    ASSERT_TRUE(store->write("runs/x/run.json", "{}"));
    EXPECT_EQ(mode_of(directory.path() + "/.local"), 0700u);
    EXPECT_EQ(mode_of(root), 0700u);
    EXPECT_EQ(mode_of(root + "/runs/x"), 0700u);
    EXPECT_EQ(mode_of(root + "/runs/x/run.json"), 0600u);
}

TEST(PosixStore, RefusesAFolderThatOthersMayWriteTo)
{
    const Directory directory;
    fs::permissions(directory.path(), fs::perms(0770));
    const auto store = PosixStore::open(directory.path());
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, Error::Kind::denied);
    EXPECT_THAT(store.error().text, HasSubstr("(mode 0770): chmod go-w "));
}

TEST(PosixStore, RefusesAFolderOfSomebodyElse)
{
    const std::string theirs = ::geteuid() == 0 ? "" : "/";
    const Directory directory;
    if (theirs.empty()) {
        ASSERT_EQ(::chown(directory.path().c_str(), 12345, 12345), 0);
    }
    const auto store = PosixStore::open(theirs.empty() ? directory.path() : theirs);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, Error::Kind::denied);
    EXPECT_THAT(store.error().text, HasSubstr("GPUQ_STATE_DIR"));
}

TEST(PosixStore, SaysWhyItsFolderCanNotBeMade)
{
    const Directory directory;
    std::ofstream(directory.path() + "/file") << "x";
    const auto store = PosixStore::open(directory.path() + "/file/gpuq");
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, Error::Kind::io);
    EXPECT_THAT(store.error().text, HasSubstr("Not a directory"));
    EXPECT_EQ(kind_of(PosixStore::open("relative")), Error::Kind::usage);
}

TEST(PosixStore, FollowsNoSymbolicLinkBelowItsRoot)
{
    const Directory directory;
    const Directory elsewhere;
    std::ofstream(elsewhere.path() + "/secret") << "secret";
    const auto store = PosixStore::open(directory.path()).value();
    fs::create_symlink(elsewhere.path(), directory.path() + "/runs");
    fs::create_symlink(elsewhere.path() + "/secret", directory.path() + "/file");
    EXPECT_EQ(kind_of(store->read("runs/secret")), Error::Kind::io);
    EXPECT_EQ(kind_of(store->read("file")), Error::Kind::io);
    EXPECT_EQ(kind_of(store->list("runs")), Error::Kind::io);
    EXPECT_EQ(kind_of(store->write("runs/new", "x")), Error::Kind::io);
    EXPECT_FALSE(fs::exists(elsewhere.path() + "/new"));
    ASSERT_TRUE(store->write("file", "own"));
    EXPECT_EQ(store->read("file").value(), "own");
    std::string secret;
    std::ifstream(elsewhere.path() + "/secret") >> secret;
    EXPECT_EQ(secret, "secret");
}

TEST(PosixStore, DoesNotHangOnAFifo)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    ASSERT_EQ(::mkfifo((directory.path() + "/fifo").c_str(), 0600), 0);
    EXPECT_EQ(kind_of(store->read("fifo")), Error::Kind::io);
}

TEST(PosixStore, SaysThatItsFolderIsGone)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path() + "/state").value();
    fs::remove_all(directory.path() + "/state");
    EXPECT_EQ(kind_of(store->read("a")), Error::Kind::missing);
    const auto written = store->write("a", "x");
    EXPECT_EQ(kind_of(written), Error::Kind::io);
    EXPECT_THAT(written.error().text, HasSubstr(directory.path() + "/state/a: No such file"));
}

TEST(PosixStore, HidesWhatACrashLeftBehind)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    std::ofstream(directory.path() + "/.tmp-0123") << "half";
    ASSERT_TRUE(store->write("whole", "x"));
    EXPECT_THAT(store->list("").value(), UnorderedElementsAre("whole"));
}

TEST(PosixStore, RemovesWhatACrashLeftBehindADayAgo)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    ASSERT_TRUE(store->write("packs/whole", "x"));
    const fs::path packs = directory.path() + "/packs";
    const auto now = fs::file_time_type::clock::now();
    for (const auto& [name, age] :
         {std::pair(".tmp-old", 25h), {".tmp-new", 23h}, {"whole", 99h}}) {
        std::ofstream(packs / name) << "half";
        fs::last_write_time(packs / name, now - age);
    }
    EXPECT_THAT(store->list("packs").value(), UnorderedElementsAre("whole"));
    EXPECT_FALSE(fs::exists(packs / ".tmp-old"));
    EXPECT_TRUE(fs::exists(packs / ".tmp-new"));
    EXPECT_TRUE(fs::exists(packs / "whole"));
}

TEST(PosixStore, ChangesNothingIfItIsReadOnly)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    ASSERT_TRUE(store->write("runs/whole", "x"));
    const fs::path left = directory.path() + "/runs/.tmp-old";
    std::ofstream(left) << "half";
    fs::last_write_time(left, fs::file_time_type::clock::now() - 25h);
    const auto reader = PosixStore::open(directory.path(), PosixStore::Access::read_only).value();
    EXPECT_EQ(reader->read("runs/whole").value(), "x");
    EXPECT_THAT(reader->list("runs").value(), UnorderedElementsAre("whole"));
    for (const auto& changed :
         {reader->write("runs/whole", "y"), reader->write_once("runs/new", "y"),
          reader->write_together({{"runs/new", "y"}}), reader->append_line("runs/whole", "y"),
          reader->make_dir("other"), reader->remove("runs/whole"), reader->remove_tree("runs")}) {
        EXPECT_EQ(kind_of(changed), Error::Kind::denied);
    }
    EXPECT_EQ(kind_of(reader->try_lock("lock", 0)), Error::Kind::denied);
    EXPECT_TRUE(reader->write("cache/overview/lab", "y")) << "else each command would query Slurm";
    EXPECT_EQ(kind_of(reader->write("cache/../runs/whole", "y")), Error::Kind::internal);
    EXPECT_TRUE(fs::exists(left));
    EXPECT_EQ(reader->read("runs/whole").value(), "x");
    EXPECT_THAT(reader->list("").value(), UnorderedElementsAre("runs", "cache"));
    const std::string none = directory.path() + "/none";
    const auto empty = PosixStore::open(none, PosixStore::Access::read_only).value();
    EXPECT_EQ(kind_of(empty->list("runs")), Error::Kind::missing);
    EXPECT_FALSE(fs::exists(none));
}

TEST(PosixStore, ShowsReadersOldOrNewContentNeverAMixture)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    const std::string a(100'000, 'a');
    const std::string b(50'000, 'b');
    ASSERT_TRUE(store->write("f", a));
    std::atomic<bool> done = false;
    std::thread writer([&] {
        for (int i = 0; i < 100; ++i) {
            EXPECT_TRUE(store->write("f", i % 2 == 0 ? b : a));
        }
        done = true;
    });
    int mixtures = 0;
    while (!done) {
        const std::string seen = store->read("f").value();
        mixtures += seen != a && seen != b ? 1 : 0;
    }
    writer.join();
    EXPECT_EQ(mixtures, 0);
}

TEST(PosixStore, LetsExactlyOneOfManyWritersWin)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    std::atomic<int> won = 0;
    std::vector<std::thread> writers;
    for (int i = 0; i < 8; ++i) {
        writers.emplace_back([&, i] {
            const auto written = store->write_once("once", std::to_string(i));
            won += written ? 1 : 0;
            EXPECT_TRUE(written || written.error().kind == Error::Kind::busy);
        });
    }
    for (std::thread& writer : writers) {
        writer.join();
    }
    EXPECT_EQ(won, 1);
    EXPECT_THAT(store->list("").value(), UnorderedElementsAre("once"));
}

TEST(PosixStore, LeavesTheOldContentWhenTheNewDoesNotFit)
{
    // RLIMIT_FSIZE simulates a full disk: the write fails half way.
    const Directory directory;
    const auto store = PosixStore::open(directory.path()).value();
    ASSERT_TRUE(store->write("f", "old"));
    const auto write_too_much = [&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit small{.rlim_cur = 1000, .rlim_max = 1000};
        ::setrlimit(RLIMIT_FSIZE, &small);
        ::_exit(store->write("f", std::string(5000, 'x')) ? 1 : 42);
    };
    EXPECT_EXIT(write_too_much(), ::testing::ExitedWithCode(42), "");
    EXPECT_EQ(store->read("f").value(), "old");
    EXPECT_THAT(store->list("").value(), UnorderedElementsAre("f"));
}

TEST(PosixStoreTree, NeitherCountsNorTouchesWhatASymbolicLinkPointsTo)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path() + "/state").value();
    const std::string precious = directory.path() + "/precious";
    fs::create_directory(precious);
    std::ofstream(precious + "/data") << std::string(1000, 'x');
    ASSERT_TRUE(store->write("runs/a/run.json", "12345"));
    const std::string run = store->root() + "/runs/a";
    fs::create_symlink(precious, run + "/to-folder");
    fs::create_symlink(precious + "/data", run + "/to-file");
    fs::create_symlink(precious, store->root() + "/runs/b");

    EXPECT_EQ(store->tree_size("runs/a").value(), 5U);
    EXPECT_FALSE(store->tree_size("runs/b"));
    EXPECT_FALSE(store->remove_tree("runs/b"));
    EXPECT_TRUE(store->remove_tree("runs/a"));
    EXPECT_FALSE(fs::exists(run));
    EXPECT_EQ(fs::file_size(precious + "/data"), 1000U);

    fs::create_directory_symlink(precious, store->root() + "/link");
    EXPECT_FALSE(store->remove_tree("link/sub"));
}

TEST(PosixStoreTree, WhatAnInterruptedRemovalHasLeftGoesWithTheNext)
{
    const Directory directory;
    const auto store = PosixStore::open(directory.path() + "/state").value();
    ASSERT_TRUE(store->write("runs/a/run.json", "{}"));
    const std::string left = store->root() + "/runs/.tmp-removed-.tmp-0123";
    fs::create_directories(left + "/link-1");
    EXPECT_THAT(store->list("runs").value(), testing::ElementsAre("a"));
    ASSERT_TRUE(store->remove_tree("runs/a"));
    EXPECT_FALSE(fs::exists(left));
}

} // namespace
} // namespace gpuq
