// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

/// The contract of Store, checked against the real implementation and the fake. Include it in one
/// file per test program and instantiate it with the stores under test.
namespace gpuq {

struct StoreMaker {
    std::string name;
    /// Makes a new, empty store. The pointer also owns the store's storage.
    std::function<std::shared_ptr<Store>()> make;
};

class StoreContract : public ::testing::TestWithParam<StoreMaker> {
protected:
    std::shared_ptr<Store> m_owner = GetParam().make();
    Store& m_store = *m_owner;
};

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

template <typename T>
Error::Kind kind_of(const Result<T>& result)
{
    EXPECT_FALSE(result.has_value());
    return result ? Error::Kind::internal : result.error().kind;
}

TEST_P(StoreContract, GivesBackWhatWasWritten)
{
    const std::string bytes("a\0b\n\xff", 5);
    ASSERT_TRUE(m_store.write("runs/x/run.json", bytes));
    EXPECT_EQ(m_store.read("runs/x/run.json").value(), bytes);
    EXPECT_EQ(m_store.size("runs/x/run.json").value(), 5u);
}

TEST_P(StoreContract, ReplacesTheWholeContent)
{
    ASSERT_TRUE(m_store.write("a", "a long first content"));
    ASSERT_TRUE(m_store.write("a", "short"));
    EXPECT_EQ(m_store.read("a").value(), "short");
    ASSERT_TRUE(m_store.write("a", ""));
    EXPECT_EQ(m_store.read("a").value(), "");
}

TEST_P(StoreContract, SaysMissingForWhatIsNotThere)
{
    EXPECT_EQ(kind_of(m_store.read("no/such")), Error::Kind::missing);
    EXPECT_EQ(kind_of(m_store.read_at("no", 0, 10)), Error::Kind::missing);
    EXPECT_EQ(kind_of(m_store.size("no")), Error::Kind::missing);
    EXPECT_EQ(kind_of(m_store.list("no")), Error::Kind::missing);
}

TEST_P(StoreContract, ReadsFromTheMiddleAndUpToTheEnd)
{
    ASSERT_TRUE(m_store.write("log", "0123456789"));
    EXPECT_EQ(m_store.read_at("log", 3, 4).value(), "3456");
    EXPECT_EQ(m_store.read_at("log", 8, 100).value(), "89");
    EXPECT_EQ(m_store.read_at("log", 8, std::size_t{1} << 50).value(), "89"); // allocates no 1 PiB
    EXPECT_EQ(m_store.read_at("log", 10, 1).value(), "");
    EXPECT_EQ(m_store.read_at("log", 1'000'000, 1).value(), "");
    EXPECT_EQ(m_store.read_at("log", 0, 0).value(), "");
}

TEST_P(StoreContract, RefusesToReadALargeFileWhole)
{
    const std::string largest(4 << 20, 'x');
    ASSERT_TRUE(m_store.write("a", largest));
    EXPECT_EQ(m_store.read("a").value().size(), largest.size());
    ASSERT_TRUE(m_store.write("a", largest + "x"));
    EXPECT_EQ(kind_of(m_store.read("a")), Error::Kind::io);
    EXPECT_EQ(m_store.read_at("a", 4 << 20, 10).value(), "x");
}

TEST_P(StoreContract, LetsTheFirstWriterWin)
{
    ASSERT_TRUE(m_store.write_once("runs/x/ended.json", "first"));
    EXPECT_EQ(kind_of(m_store.write_once("runs/x/ended.json", "second")), Error::Kind::busy);
    EXPECT_EQ(m_store.read("runs/x/ended.json").value(), "first");
    EXPECT_THAT(m_store.list("runs/x").value(), UnorderedElementsAre("ended.json"));
}

TEST_P(StoreContract, AppendsLinesToAFile)
{
    ASSERT_TRUE(m_store.append_line("sweeps/x/workers/y", "one"));
    ASSERT_TRUE(m_store.append_line("sweeps/x/workers/y", "two"));
    EXPECT_EQ(m_store.read("sweeps/x/workers/y").value(), "one\ntwo\n");
    EXPECT_EQ(kind_of(m_store.append_line("../y", "one")), Error::Kind::internal);
}

TEST_P(StoreContract, AppendsAfterAnIncompleteLine)
{
    ASSERT_TRUE(m_store.write("journal", "one\ntw"));
    ASSERT_TRUE(m_store.append_line("journal", "three"));
    EXPECT_EQ(m_store.read("journal").value(), "one\ntw\nthree\n");
}

TEST_P(StoreContract, WritesSeveralFilesTogetherInTheirOrder)
{
    ASSERT_TRUE(m_store.write("a/taken", "old"));
    EXPECT_TRUE(m_store.write_together({{"a/b/run", "one"}, {"a/mark", ""}}));
    EXPECT_EQ(m_store.read("a/b/run").value(), "one");
    EXPECT_EQ(m_store.read("a/mark").value(), "");
    const auto second = m_store.write_together({{"a/c", "two"}, {"a/taken", "new"}, {"a/d", ""}});
    EXPECT_EQ(second.error().kind, Error::Kind::busy);
    EXPECT_EQ(m_store.read("a/taken").value(), "old");
    EXPECT_EQ(m_store.read("a/d").error().kind, Error::Kind::missing);
    EXPECT_EQ(m_store.list("a")->size(), 4U) << "b, c, mark, taken and no temporary name";
    EXPECT_EQ(m_store.write_together({{"../out", ""}}).error().kind, Error::Kind::internal);
}

TEST_P(StoreContract, ListsFilesAndFolders)
{
    ASSERT_TRUE(m_store.write("runs/x/run.json", "{}"));
    ASSERT_TRUE(m_store.make_dir("runs/x/inbox"));
    ASSERT_TRUE(m_store.make_dir("runs/y"));
    EXPECT_THAT(m_store.list("runs").value(), UnorderedElementsAre("x", "y"));
    EXPECT_THAT(m_store.list("runs/x").value(), UnorderedElementsAre("run.json", "inbox"));
    EXPECT_THAT(m_store.list("runs/y").value(), IsEmpty());
    EXPECT_THAT(m_store.list("").value(), UnorderedElementsAre("runs"));
}

TEST_P(StoreContract, MakesAFolderOnlyOnce)
{
    ASSERT_TRUE(m_store.make_dir("index/jobs/c"));
    ASSERT_TRUE(m_store.write("index/jobs/c/1", "k"));
    EXPECT_TRUE(m_store.make_dir("index/jobs/c"));
    EXPECT_EQ(m_store.read("index/jobs/c/1").value(), "k");
}

TEST_P(StoreContract, RemovesAndDoesNotMindWhatIsGone)
{
    ASSERT_TRUE(m_store.write("index/active/x", ""));
    EXPECT_TRUE(m_store.remove("index/active/x"));
    EXPECT_TRUE(m_store.remove("index/active/x"));
    EXPECT_TRUE(m_store.remove("no/such/folder"));
    EXPECT_EQ(kind_of(m_store.read("index/active/x")), Error::Kind::missing);
    EXPECT_TRUE(m_store.remove("index/active"));
    EXPECT_EQ(kind_of(m_store.list("index/active")), Error::Kind::missing);
}

TEST_P(StoreContract, KeepsAFolderThatHoldsSomething)
{
    ASSERT_TRUE(m_store.write("index/active/x", ""));
    EXPECT_EQ(kind_of(m_store.remove("index")), Error::Kind::io);
    EXPECT_TRUE(m_store.read("index/active/x"));
}

TEST_P(StoreContract, ReadsNoFolderAsAFileNorAFileAsAFolder)
{
    ASSERT_TRUE(m_store.write("runs/x", ""));
    EXPECT_EQ(kind_of(m_store.read("runs")), Error::Kind::io);
    EXPECT_EQ(kind_of(m_store.list("runs/x")), Error::Kind::io);
}

TEST_P(StoreContract, LeavesNoWayOutOfTheFolder)
{
    for (const std::string path : {"../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/."}) {
        EXPECT_EQ(kind_of(m_store.write(path, "x")), Error::Kind::internal) << path;
        EXPECT_EQ(kind_of(m_store.read(path)), Error::Kind::internal) << path;
    }
}

TEST_P(StoreContract, LocksAByteUntilTheDescriptorIsClosed)
{
    auto first = m_store.try_lock("index/lock", 7);
    ASSERT_TRUE(first);
    EXPECT_EQ(kind_of(m_store.try_lock("index/lock", 7)), Error::Kind::busy);
    EXPECT_TRUE(m_store.try_lock("index/lock", 8));
    EXPECT_TRUE(m_store.try_lock("index/lock", 0xffffffff));
    EXPECT_TRUE(m_store.try_lock("index/other", 7));
    first->reset();
    EXPECT_TRUE(m_store.try_lock("index/lock", 7));
    EXPECT_EQ(m_store.size("index/lock").value(), 0U);
    EXPECT_EQ(kind_of(m_store.try_lock("../lock", 7)), Error::Kind::internal);
}

TEST_P(StoreContract, SumsTheSizesInAFolder)
{
    ASSERT_TRUE(m_store.write("runs/x/run.json", "12345"));
    ASSERT_TRUE(m_store.write("runs/x/link-1/out.log", std::string(10'000, 'x')));
    ASSERT_TRUE(m_store.write("runs/xy/run.json", "not this one"));
    EXPECT_EQ(m_store.tree_size("runs/x").value(), 10'005U);
    EXPECT_EQ(kind_of(m_store.tree_size("runs/z")), Error::Kind::missing);
    EXPECT_EQ(kind_of(m_store.tree_size("runs/x/run.json")), Error::Kind::io);
    EXPECT_EQ(kind_of(m_store.tree_size("../x")), Error::Kind::internal);
}

TEST_P(StoreContract, RemovesAFolderWithAllThatIsInIt)
{
    ASSERT_TRUE(m_store.write("runs/x/run.json", "{}"));
    ASSERT_TRUE(m_store.write("runs/x/link-1/out.log", "words"));
    ASSERT_TRUE(m_store.make_dir("runs/x/inbox"));
    ASSERT_TRUE(m_store.write("runs/xy/run.json", "not this one"));
    ASSERT_TRUE(m_store.remove_tree("runs/x"));
    EXPECT_THAT(m_store.list("runs").value(), UnorderedElementsAre("xy"));
    EXPECT_EQ(kind_of(m_store.read("runs/x/run.json")), Error::Kind::missing);
    EXPECT_EQ(m_store.read("runs/xy/run.json").value(), "not this one");
    EXPECT_TRUE(m_store.remove_tree("runs/x")); // again
    EXPECT_EQ(kind_of(m_store.remove_tree("runs/xy/run.json")), Error::Kind::io);
    EXPECT_EQ(kind_of(m_store.remove_tree("runs/..")), Error::Kind::internal);
}

} // namespace gpuq
