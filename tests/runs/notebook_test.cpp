// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/notebook.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "io/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <unistd.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

const std::string k_token(48, 'a');

RunKey key(int second)
{
    return RunKey::make(Time(std::chrono::seconds(second)), {1, 2, 3, 4, 5, 6, 7, 8});
}

const Notebook k_notebook{"/home/ada/\xc3\xa4 b", NotebookPage::lab, 90s,
                          "/usr/libexec/supervisor"};

TEST(Notebook, IsReadAsItWasWritten)
{
    EXPECT_EQ(*notebook_from_json(to_json(k_notebook)), k_notebook);
    for (const char* const wrong : {"", "{}", "[]", R"({"schema":2})", "null"}) {
        EXPECT_FALSE(notebook_from_json(wrong)) << wrong;
    }
}

TEST(Notebook, HasItsTokenInOneFileOnly)
{
    fakes::MemoryStore store;
    ASSERT_TRUE(write_notebook(store, key(1), k_notebook, k_token));
    int files = 0;
    for (const auto& [path, content] : store.files) {
        if (content.find(k_token) != std::string::npos) {
            EXPECT_EQ(path, layout::connect_file(key(1), k_notebook_token));
            ++files;
        }
    }
    EXPECT_EQ(files, 1);
    EXPECT_EQ(*read_notebook(store, key(1)), k_notebook);
    EXPECT_FALSE(read_notebook(store, key(2)));
}

TEST(Notebook, IsExecutedWithItsConfiguration)
{
    const std::string option = "--config=/state/" + layout::connect_file(key(1), k_notebook_config);
    EXPECT_THAT(notebook_program("/state", key(1), NotebookPage::classic, NotebookPlace::node),
                testing::ElementsAre("jupyter-notebook", option));
    const auto lab = notebook_program("/state", key(1), NotebookPage::lab, NotebookPlace::node);
    EXPECT_THAT(lab, testing::ElementsAre("jupyter-lab", option));
    EXPECT_EQ(jupyter_in(lab), "jupyter-lab");
}

TEST(Notebook, IsNotExecutedWithoutItsConfigurationInAContainer)
{
    const std::string state = testing::TempDir() + "gpuq-notebook-" + std::to_string(::getpid());
    const auto run = [&] {
        auto program = notebook_program(state, key(1), NotebookPage::lab, NotebookPlace::container);
        EXPECT_EQ(jupyter_in(program), "jupyter-lab");
        std::replace(program.begin(), program.end(), std::string("jupyter-lab"),
                     std::string("echo"));
        const auto done = gpuq::run({.argv = program}, {.streams = Capture::Streams::apart});
        return std::tuple(done->status, done->out, done->err);
    };
    const std::string config = state + "/" + layout::connect_file(key(1), k_notebook_config);
    EXPECT_EQ(run(), std::tuple(1, std::string(),
                                "gpuq: notebook: the container does not see " + config +
                                    ": bind the state directory in it (container, man gpuq)\n"));
    std::filesystem::create_directories(std::filesystem::path(config).parent_path());
    std::ofstream(config) << "c";
    EXPECT_EQ(run(), std::tuple(0, "--config=" + config + "\n", std::string()));
    std::filesystem::remove_all(state);
}

TEST(Notebook, OfADirectoryIsFoundWhileItRunsAndAfterwards)
{
    fakes::MemoryStore store;
    const auto make = [&](int second, const std::string& directory, bool active) {
        Notebook notebook = k_notebook;
        notebook.directory = directory;
        ASSERT_TRUE(write_notebook(store, key(second), notebook, k_token));
        if (active) {
            ASSERT_TRUE(store.write(layout::active(key(second)), ""));
        }
    };
    make(1, "/a", false);
    make(2, "/a", false);
    make(3, "/b", true);
    make(4, "/b", false);
    ASSERT_TRUE(store.write(layout::active(key(5)), "")); // another run
    EXPECT_THAT(find_notebooks(store, "/a")->active, testing::IsEmpty());
    EXPECT_EQ(find_notebooks(store, "/a")->ended, key(2));
    EXPECT_THAT(find_notebooks(store, "/b")->active, testing::ElementsAre(key(3)));
    make(6, "/b", true);
    EXPECT_THAT(find_notebooks(store, "/b")->active, testing::ElementsAre(key(6), key(3)));
    EXPECT_THAT(find_notebooks(store, "/c")->active, testing::IsEmpty());
    EXPECT_EQ(find_notebooks(store, "/c")->ended, std::nullopt);
}

TEST(NotebookKernels, AreReadFromTheListOfJupyter)
{
    EXPECT_THAT(
        kernels_from_json(R"({"schema": 1, "kernels": [{"path": "a.ipynb", "name": "python3"}]})"),
        testing::ElementsAre(NotebookKernel{"a.ipynb", "python3"}));
    for (const char* const wrong : {"", "{}", R"({"schema": 2, "kernels": []})",
                                    R"({"schema": 1, "kernels": [{"path": 1}]})"}) {
        EXPECT_TRUE(kernels_from_json(wrong).empty()) << wrong;
    }
}

TEST(NotebookNote, IsReadAsJupyterWritesIt)
{
    EXPECT_EQ(notebook_note_from_json(R"({"schema": 1, "at": 1.5, "text": "it ends in 5 min"})"),
              "it ends in 5 min");
    for (const char* const wrong :
         {"", "{", "[]", "1", R"({"schema": 2, "text": "a"})", R"({"text": "a"})",
          R"({"schema": 1, "text": 5})", R"({"schema": 1})"}) {
        EXPECT_EQ(notebook_note_from_json(wrong), "") << wrong;
    }
}

TEST(NotebookGate, IsThatOfTheLink)
{
    EXPECT_EQ(notebook_gate_in("2 gate-x\n", LinkNumber{2}), "gate-x");
    EXPECT_EQ(notebook_gate_in("1 gate-x\n", LinkNumber{2}), std::nullopt);
    for (const char* const wrong : {"", "2", "2 ", "2 a b", "x a"}) {
        EXPECT_EQ(notebook_gate_in(wrong, LinkNumber{2}), std::nullopt) << wrong;
    }
    EXPECT_EQ(notebook_gate_in("2 " + std::string(200, 'x'), LinkNumber{2}), std::nullopt);
}

TEST(NotebookAddress, IsCheckedSinceItComesFromAnotherHost)
{
    const NotebookAddress address{key(1).text(), 7, k_token, "/tree"};
    const std::string line = line_of(address);
    EXPECT_EQ(notebook_address_from(line.substr(0, line.size() - 1)), address);
    const std::string good = "NOTEBOOK " + key(1).text();
    for (const std::string& wrong :
         {std::string(), good, good + " 7 " + k_token,
          "X " + key(1).text() + " 7 " + k_token + " /tree", good + " x " + k_token + " /tree",
          good + " 7 short /tree", good + " 7 " + std::string(48, 'g') + " /tree",
          good + " 7 " + k_token + " /other", good + " 99999999999 " + k_token + " /tree",
          "NOTEBOOK ../x 7 " + k_token + " /tree"}) {
        EXPECT_EQ(notebook_address_from(wrong), std::nullopt) << wrong;
    }
}

} // namespace
} // namespace gpuq
