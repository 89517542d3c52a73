// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/commit.h"

#include "fakes/memory_store.h"
#include "snapshots/take.h"
#include "snapshots/work_tree.h"

#include <gmock/gmock.h>

namespace gpuq::snapshots {
namespace {

using ::testing::ElementsAre;
using testing::WorkTree;

struct CommitTest : ::testing::Test {
    CommitTest()
    {
        tree.git({"init", "-q"});
        tree.write("train.py", "1");
        tree.write("run.sh", "1");
        tree.write("old.py", "1");
        tree.write("data.csv", "1");
        tree.git({"add", "."});
        tree.git({"commit", "-qm", "x"});
    }

    /// `-` removed, `+` not in the commit, `~` changed; then the former content.
    std::vector<std::string> changes(const std::vector<std::string>& command = {})
    {
        const auto taken = take(store, tree.path(), command, true);
        EXPECT_TRUE(taken);
        const auto found = changes_from_commit(store, taken->manifest);
        EXPECT_TRUE(found) << (found ? "" : found.error().text);
        std::vector<std::string> list;
        for (const CommitChange& change : found ? *found : std::vector<CommitChange>()) {
            const std::string mark = change.after == nullptr ? "-" : change.before ? "~" : "+";
            list.push_back(mark + change.path);
            if (change.before) {
                const auto old = committed_content(taken->manifest, *change.before);
                list.back() += " " + old.value_or("unknown");
            }
        }
        return list;
    }

    fakes::MemoryStore store;
    WorkTree tree;
};

TEST_F(CommitTest, FindsWhatDiffers)
{
    EXPECT_THAT(changes({"train.py", "data.csv"}), ElementsAre());
    tree.write("train.py", "2");
    tree.write("run.sh", "1", true);
    tree.write("new.py", "");
    tree.remove("old.py");
    tree.remove("data.csv");
    EXPECT_THAT(changes(), ElementsAre("+new.py", "-old.py 1", "~run.sh 1", "~train.py 1"));
}

TEST_F(CommitTest, ComparesSubmodulesWithTheirOwnCommit)
{
    const WorkTree other;
    other.git({"init", "-q"});
    other.write("layer.py", "1");
    other.git({"add", "."});
    other.git({"commit", "-qm", "x"});
    tree.git({"submodule", "--quiet", "add", other.path(), "layers"});
    tree.git({"commit", "-qam", "y"});
    EXPECT_THAT(changes(), ElementsAre());
    tree.write("layers/layer.py", "2");
    EXPECT_THAT(changes(), ElementsAre("~layers/layer.py 1"));
}

TEST_F(CommitTest, ACommitThatIsGoneIsUnknown)
{
    auto taken = take(store, tree.path(), {}, true);
    ASSERT_TRUE(taken);
    taken->manifest.commit = std::string(40, '0');
    EXPECT_EQ(changes_from_commit(store, taken->manifest).error().kind, Error::Kind::missing);
    taken->manifest.commit = "--output=x";
    EXPECT_EQ(changes_from_commit(store, taken->manifest).error().kind, Error::Kind::missing);
    taken->manifest.commit = "";
    EXPECT_EQ(changes_from_commit(store, taken->manifest).error().kind, Error::Kind::missing);
}

TEST_F(CommitTest, ARepositoryCannotMakeItFetch)
{
    const auto taken = take(store, tree.path(), {}, true);
    ASSERT_TRUE(taken);
    tree.git({"config", "core.repositoryFormatVersion", "1"});
    tree.git({"config", "extensions.partialClone", "origin"});
    tree.git({"config", "remote.origin.promisor", "true"});
    tree.git({"config", "remote.origin.url", tree.path()});
    tree.git({"config", "remote.origin.uploadpack", "touch " + tree.path() + "/executed; false"});
    tree.git({"config", "protocol.file.allow", "always"});
    std::filesystem::remove_all(tree.path() + "/.git/objects");
    std::filesystem::create_directory(tree.path() + "/.git/objects");
    EXPECT_FALSE(changes_from_commit(store, taken->manifest));
    EXPECT_FALSE(committed_content(taken->manifest, {"", std::string(40, '1'), false, true}));
    EXPECT_FALSE(std::filesystem::exists(tree.path() + "/executed"));
}

} // namespace
} // namespace gpuq::snapshots
