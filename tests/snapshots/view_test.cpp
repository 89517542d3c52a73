// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/view.h"

#include "fakes/memory_store.h"
#include "snapshots/take.h"
#include "snapshots/work_tree.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::snapshots {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::WorkTree;

struct ViewTest : ::testing::Test {
    void SetUp() override
    {
        tree.write("train.py", "old\n");
        tree.write("lib/model.py", "old model\n");
        tree.write("data/a.csv", "1\n");
        const auto taken = take(store, tree.path(), {}, false);
        ASSERT_TRUE(taken);
        reference.id = taken->id;
        manifest = taken->manifest;
    }

    /// Runs a shell command in the view. Returns its output, stderr too.
    std::string run(const std::string& command)
    {
        Pipe pipe = *make_pipe();
        const pid_t child = ::fork();
        if (child == 0) {
            ::dup2(pipe.write.get(), STDOUT_FILENO);
            ::dup2(pipe.write.get(), STDERR_FILENO);
            (void)::chdir(tree.path().c_str());
            ::_exit(execute(store, reference, {"sh", "-c", command}, started));
        }
        pipe.write.reset();
        std::string output;
        std::array<char, 4096> bytes{};
        for (ssize_t count = 0;
             (count = ::read(pipe.read.get(), bytes.data(), bytes.size())) > 0;) {
            output.append(bytes.data(), static_cast<std::size_t>(count));
        }
        ::waitpid(child, &status, 0);
        return output;
    }

    fakes::MemoryStore store;
    WorkTree tree;
    Reference reference{.required = true};
    Manifest manifest;
    Started started = Started::first;
    int status = 0;
};

TEST_F(ViewTest, UnchangedFilesNeedNoNamespace)
{
    const auto outside = std::filesystem::read_symlink("/proc/self/ns/mnt").string();
    EXPECT_EQ(run("cat train.py; readlink /proc/self/ns/mnt"), "old\n" + outside + "\n");
}

TEST_F(ViewTest, ShowsTheFilesAsTheyWere)
{
    tree.write("train.py", "new\n");
    const std::string output = run("cat train.py lib/model.py " + tree.path() + "/train.py");
    EXPECT_THAT(output, HasSubstr("changed since: train.py\nold\nold model\nold\n"));
    EXPECT_EQ(tree.read("train.py"), "new\n");
}

TEST_F(ViewTest, SoDoesAFileThatIsReplacedAsEditorsDo)
{
    tree.write("train.new", "new\n");
    std::filesystem::rename(tree.path() + "/train.new", tree.path() + "/train.py");
    EXPECT_THAT(run("cat train.py"), HasSubstr("\nold\n"));
}

TEST_F(ViewTest, EverythingElseIsAsBefore)
{
    tree.write("train.py", "new\n");
    tree.write("data/a.csv", "2\n");
    EXPECT_THAT(run("cat data/a.csv; echo x >lib/out.txt; mkdir made; echo y >made/out; pwd"),
                HasSubstr("\n2\n" + tree.path()));
    EXPECT_EQ(tree.read("lib/out.txt"), "x\n");
    EXPECT_EQ(tree.read("made/out"), "y\n");
}

TEST_F(ViewTest, TheFilesOfTheSnapshotCannotBeChanged)
{
    tree.write("train.py", "new\n");
    EXPECT_THAT(run("echo x >lib/model.py"), HasSubstr("Read-only file system"));
    EXPECT_EQ(tree.read("lib/model.py"), "old model\n");
}

TEST_F(ViewTest, FilesThatTheProgramMayWriteAreReadOnlyIfTheyHaveChanged)
{
    tree.write("deck.inp", "old deck\n");
    tree.write("conf.yaml", "old conf\n");
    reference.id = take(store, tree.path(), {"solve", "deck.inp"}, false)->id;
    tree.write("train.py", "new\n");
    EXPECT_THAT(run("cat train.py; echo x >deck.inp && echo y >conf.yaml && echo written"),
                HasSubstr("\nold\nwritten\n"));
    EXPECT_EQ(tree.read("deck.inp") + tree.read("conf.yaml"), "x\ny\n");
    EXPECT_THAT(run("cat deck.inp conf.yaml; echo x >deck.inp"),
                AllOf(HasSubstr("old deck\nold conf\n"), HasSubstr("Read-only file system")));
}

TEST_F(ViewTest, AFileOfTheCommandLineIsTheProgramsOwnOnceThatHasStarted)
{
    tree.write("state", "old\n");
    reference.id = take(store, tree.path(), {"solve", "state"}, false)->id;
    started = Started::again;
    tree.write("state", "of link 1\n");
    EXPECT_EQ(run("cat state; echo of link 2 >state"), "of link 1\n");
    tree.write("train.py", "new\n");
    EXPECT_THAT(run("cat train.py state"), HasSubstr("\nold\nof link 2\n"));
}

TEST_F(ViewTest, PutsMissingFilesBackUntilTheProgramEnds)
{
    tree.remove("lib");
    tree.write("train.py", "new\n");
    EXPECT_THAT(run("cat train.py lib/model.py; echo y >lib/out.txt"),
                HasSubstr("\nold\nold model\n"));
    EXPECT_EQ(remove_put_back(manifest), 1U);
    EXPECT_EQ(tree.read("lib/model.py"), "");
    EXPECT_EQ(tree.read("lib/out.txt"), "y\n");
    tree.remove("lib");
    (void)run("cat lib/model.py");
    EXPECT_EQ(remove_put_back(manifest), 1U);
    EXPECT_FALSE(std::filesystem::exists(tree.path() + "/lib"));
}

TEST_F(ViewTest, PutsNothingBackOutsideOfGitUnlessRequired)
{
    reference.required = false;
    tree.remove("lib");
    EXPECT_EQ(run("cat train.py; ls"), "old\ndata\ntrain.py\n");
    tree.write("train.py", "new\n");
    EXPECT_THAT(run("cat train.py; ls"), HasSubstr("\nold\ndata\ntrain.py\n"));
}

TEST_F(ViewTest, KeepsAFileThatTheUserHasWrittenInTheMeantime)
{
    tree.remove("train.py");
    (void)run("true");
    tree.write("train.py", "new\n");
    EXPECT_EQ(remove_put_back(manifest), 0U);
    EXPECT_EQ(tree.read("train.py"), "new\n");
}

TEST_F(ViewTest, KeepsAFileThatAnotherProgramNeeds)
{
    tree.remove("train.py");
    const std::string fifo = tree.path() + "/fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const pid_t other = ::fork();
    if (other == 0) {
        (void)run("cat fifo");
        ::_exit(0);
    }
    const Descriptor hold(::open(fifo.c_str(), O_WRONLY)); // the other one has begun
    EXPECT_EQ(remove_put_back(manifest), 0U);
    ASSERT_TRUE(write_all(hold.get(), "."));
    const_cast<Descriptor&>(hold).reset();
    ::waitpid(other, nullptr, 0);
    EXPECT_EQ(remove_put_back(manifest), 1U);
}

TEST_F(ViewTest, AFileThatALinkHasReplacedKeepsNoProgramFromStarting)
{
    reference.required = false;
    tree.remove("train.py");
    std::filesystem::create_symlink("data/a.csv", tree.path() + "/train.py");
    tree.write("lib/model.py", "new model\n");
    EXPECT_THAT(run("cat train.py lib/model.py"), HasSubstr("\n1\nold model\n"));
}

TEST_F(ViewTest, AFileThatWasPutBackIsKeptForTheNextProgramToo)
{
    tree.remove("train.py");
    ASSERT_EQ(::mkfifo((tree.path() + "/fifo").c_str(), 0600), 0);
    const auto start = [this](const std::string& command) {
        const pid_t child = ::fork();
        if (child == 0) {
            (void)run(command);
            ::_exit(0);
        }
        return child;
    };
    (void)run("cat train.py"); // which puts it back
    EXPECT_THAT(changes_since(manifest).missing, ElementsAre("train.py")) << "only for that";
    const pid_t next = start("cat fifo");
    Descriptor hold(::open((tree.path() + "/fifo").c_str(), O_WRONLY));
    EXPECT_EQ(remove_put_back(manifest), 0U);
    hold.reset();
    ::waitpid(next, nullptr, 0);
    EXPECT_EQ(remove_put_back(manifest), 1U);
}

TEST_F(ViewTest, DoesNotFollowALinkOutOfTheRoot)
{
    tree.remove("lib");
    std::filesystem::create_symlink("/etc", tree.path() + "/lib");
    EXPECT_THAT(run("echo started"), HasSubstr("the program is not started"));
    EXPECT_EQ(WEXITSTATUS(status), 125);
    EXPECT_FALSE(std::filesystem::exists("/etc/model.py"));
}

TEST_F(ViewTest, WithoutTheSnapshotARequiredOneRefuses)
{
    ASSERT_TRUE(store.remove(tree_path(reference.id)));
    EXPECT_THAT(run("echo started"), HasSubstr("can't be read"));
    EXPECT_EQ(WEXITSTATUS(status), 125);
    reference.required = false;
    EXPECT_THAT(run("echo started"), HasSubstr("started\n"));
}

TEST_F(ViewTest, ReportsWhatIsMissingAndChanged)
{
    EXPECT_TRUE(changes_since(manifest).empty());
    tree.write("train.py", "new\n");
    tree.remove("lib");
    EXPECT_THAT(changes_since(manifest).changed, ElementsAre("train.py"));
    EXPECT_THAT(changes_since(manifest).missing, ElementsAre("lib/model.py"));
    tree.write("train.py", "old\n", true);
    EXPECT_THAT(changes_since(manifest).changed, ElementsAre("train.py")) << "the mode";
}

TEST_F(ViewTest, AnUnknownProgramIsNotFound)
{
    tree.write("train.py", "new\n");
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(execute(store, reference, {"/nothing/at/all"}));
    }
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 127);
}

} // namespace
} // namespace gpuq::snapshots
