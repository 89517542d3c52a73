// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/selection.h"

#include "snapshots/work_tree.h"

#include <gmock/gmock.h>

namespace gpuq::snapshots {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing::WorkTree;

std::vector<std::string> paths_of(const Candidates& found)
{
    std::vector<std::string> paths;
    for (const auto& file : found.files) {
        paths.push_back(file.path);
    }
    return paths;
}

std::vector<std::string> listed(const std::string& directory,
                                const std::vector<std::string>& command = {})
{
    const auto found = list_files(directory, command, true);
    EXPECT_TRUE(found);
    return found ? paths_of(*found) : std::vector<std::string>();
}

TEST(Selection, TakesSourcesAndProgramsButNoData)
{
    const auto tracked = Origin::tracked;
    EXPECT_TRUE(is_code("a/train.py", 100, false, tracked, true));
    EXPECT_TRUE(is_code("Makefile", 100, false, Origin::untracked, true));
    EXPECT_TRUE(is_code("train", 30 << 20, true, Origin::untracked, true));
    EXPECT_TRUE(is_code("ops.so", 30 << 20, false, Origin::untracked, true));
    EXPECT_FALSE(is_code("train.csv", 100, false, tracked, true));
    EXPECT_FALSE(is_code("model.pt", 100, true, tracked, true)) << "all files are executable";
    EXPECT_FALSE(is_code("notebook.ipynb", 2 << 20, false, tracked, true)) << "too large";
    EXPECT_FALSE(is_code("train", 100 << 20, true, tracked, true));
}

TEST(Selection, TakesConfigurationThatTheProgramHasNotWritten)
{
    EXPECT_TRUE(is_code("conf/model.json", 100, false, Origin::tracked, true));
    EXPECT_FALSE(is_code("outputs/config.yaml", 100, false, Origin::untracked, true));
    EXPECT_TRUE(is_code("outputs/config.yaml", 100, false, Origin::named, true));
    EXPECT_TRUE(is_code("config.yaml", 100, false, Origin::untracked, false));
    EXPECT_FALSE(is_code("results.json", 100, false, Origin::untracked, false));
}

TEST(Selection, TakesTheWordsOfTheCommandLineUnlessTheyMayBeOutput)
{
    for (const char* name : {"in.melt", "train", "deck.inp", "results.json", "args"}) {
        EXPECT_TRUE(is_code(name, 100, false, Origin::named, true)) << name;
        EXPECT_TRUE(is_code(name, 100, false, Origin::named, false)) << name;
    }
    for (const char* name : {"results.csv", "train.LOG", "state.pt", "a.jsonl"}) {
        EXPECT_FALSE(is_code(name, 100, false, Origin::named, true)) << name;
        EXPECT_FALSE(is_code(name, 100, false, Origin::named, false)) << name;
    }
    EXPECT_TRUE(is_code("a.out", 30 << 20, true, Origin::named, true));
    EXPECT_FALSE(is_code("a.csv", 100, true, Origin::named, true)) << "all files are executable";
    EXPECT_EQ(kind_of("a.out", true), Kind::source);
    EXPECT_EQ(kind_of("solver.x", true), Kind::source);
    EXPECT_EQ(kind_of("train.py", false), Kind::source);
    EXPECT_EQ(kind_of("train", true), Kind::source);
    EXPECT_EQ(kind_of("ops.so.1", false), Kind::source);
    EXPECT_EQ(kind_of("conf/model.json", true), Kind::configuration);
    EXPECT_EQ(kind_of("deck.inp", false), Kind::other);
}

TEST(Selection, WithoutGitWalksTheDirectory)
{
    const WorkTree tree;
    tree.write("train.py", "");
    tree.write("lib/a.py", "");
    tree.write(".cache/b.py", "");
    tree.write("venv/pyvenv.cfg", "");
    tree.write("venv/lib/c.py", "");
    tree.write("lib/__pycache__/a.pyc", "");
    std::filesystem::create_symlink("/etc", tree.path() + "/link");
    EXPECT_THAT(listed(tree.path()), ElementsAre("lib/a.py", "train.py"));
}

TEST(Selection, WithoutGitDoesNotListTheHomeDirectoryUnasked)
{
    const WorkTree tree;
    tree.write("train.py", "");
    ::setenv("HOME", tree.path().c_str(), 1);
    EXPECT_EQ(list_files(tree.path(), {}, false).error().kind, Error::Kind::missing);
    EXPECT_TRUE(list_files(tree.path(), {}, true));
    tree.write("project/train.py", "");
    EXPECT_TRUE(list_files(tree.path() + "/project", {}, false));
    for (int i = 0; i <= 2000; ++i) {
        tree.write("project/" + std::to_string(i), "");
    }
    EXPECT_EQ(list_files(tree.path() + "/project", {}, false).error().kind, Error::Kind::missing);
    EXPECT_TRUE(list_files(tree.path() + "/project", {}, true));
}

TEST(Selection, AHomeDirectoryThatIsAWorkTreeCountsAsNone)
{
    const WorkTree tree; // of configuration files
    tree.git({"init", "-q"});
    tree.write("data/other.py", "");
    tree.write("project/train.py", "");
    ::setenv("HOME", tree.path().c_str(), 1);
    const auto found = list_files(tree.path() + "/project", {}, false);
    ASSERT_TRUE(found);
    EXPECT_THAT(paths_of(*found), ElementsAre("train.py"));
    EXPECT_FALSE(found->with_git);
    EXPECT_THAT(listed(tree.path() + "/project"), Contains("data/other.py")) << "with --snapshot";
}

TEST(Selection, DoesNotWaitLongForGitUnasked)
{
    using namespace std::chrono_literals;
    const WorkTree tree, programs;
    tree.git({"init", "-q"});
    tree.write("train.py", "");
    const std::string before = std::getenv("PATH");
    programs.write("git", "#!/bin/sh\nsleep 0.3\nexec env PATH=" + before + " git \"$@\"\n", true);
    ::setenv("PATH", (programs.path() + ":" + before).c_str(), 1);
    const auto late = list_files(tree.path(), {}, false, 50ms);
    const auto waited = list_files(tree.path(), {}, true, 50ms);
    ::setenv("PATH", before.c_str(), 1);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind, Error::Kind::busy);
    EXPECT_THAT(late.error().text, ::testing::HasSubstr("git takes longer than 1 s to list"));
    ASSERT_TRUE(waited);
    EXPECT_TRUE(waited->with_git);
}

TEST(Selection, WithGitTakesTrackedAndNewFilesOfTheWholeWorkTree)
{
    const WorkTree tree;
    tree.git({"init", "-q"});
    tree.write("train.py", "1");
    tree.write("sub/a b\n.py", "");
    tree.git({"add", "."});
    tree.git({"commit", "-qm", "x"});
    tree.write("train.py", "2");
    tree.write("new.py", "");
    tree.write(".gitignore", "ignored.*\n");
    tree.write("ignored.yaml", "");
    auto found = list_files(tree.path() + "/sub", {"../ignored.yaml", "../../x"}, false);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->root, tree.path());
    EXPECT_EQ(found->commit.size(), 40U);
    EXPECT_THAT(paths_of(*found),
                ElementsAre(".gitignore", "ignored.yaml", "new.py", "sub/a b\n.py", "train.py"));
}

TEST(Selection, TakesTheFilesOfSubmodules)
{
    const WorkTree other;
    other.git({"init", "-q"});
    other.write("layer.py", "");
    other.git({"add", "."});
    other.git({"commit", "-qm", "x"});
    const WorkTree tree;
    tree.git({"init", "-q"});
    tree.git({"submodule", "--quiet", "add", other.path(), "layers"});
    tree.write("layers/new.py", "");
    const auto paths = listed(tree.path());
    EXPECT_THAT(paths, Contains("layers/layer.py"));
    EXPECT_THAT(paths, Contains("layers/new.py"));
    EXPECT_THAT(paths, Not(Contains("layers")));
}

TEST(Selection, ARepositoryCannotMakeItExecuteAProgram)
{
    const WorkTree tree;
    tree.git({"init", "-q"});
    tree.write("train.py", "1");
    tree.write(".gitattributes", "*.py filter=evil diff=evil\n");
    tree.git({"add", "."});
    tree.git({"commit", "-qm", "x"});
    const std::string command = "touch " + tree.path() + "/executed.py; false";
    for (const char* name : {"core.fsmonitor", "filter.evil.clean", "filter.evil.smudge",
                             "filter.evil.process", "diff.evil.textconv", "diff.external",
                             "core.sshCommand", "core.pager", "core.alternateRefsCommand"}) {
        tree.git({"config", name, command});
    }
    tree.write("train.py", "2"); // of the same size: git status would have to read it
    EXPECT_THAT(listed(tree.path()), ElementsAre(".gitattributes", "train.py"));
}

TEST(Selection, KnowsTheCommitInEveryLayout)
{
    const WorkTree tree;
    const auto commit = [](const std::string& path) {
        const auto found = list_files(path, {}, true);
        return found ? found->commit : found.error().text;
    };
    tree.git({"init", "-q"});
    tree.write("train.py", "1");
    EXPECT_EQ(commit(tree.path()), "") << "no commit yet";
    tree.git({"add", "."});
    tree.git({"commit", "-qm", "x"});
    const std::string first = commit(tree.path());
    EXPECT_EQ(first.size(), 40U);
    tree.git({"pack-refs", "--all"});
    EXPECT_EQ(commit(tree.path()), first);
    tree.git({"checkout", "-q", "--detach"});
    tree.git({"commit", "-qm", "y", "--allow-empty"});
    const std::string second = commit(tree.path());
    EXPECT_EQ(second.size(), 40U);
    EXPECT_NE(second, first);
    const WorkTree other;
    tree.git({"worktree", "add", "-q", other.path() + "/work", second});
    EXPECT_EQ(commit(other.path() + "/work"), second);
}

} // namespace
} // namespace gpuq::snapshots
