// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/machine_names.h"

#include "cli/fake_services.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace gpuq::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(Paths, BeginWithTheText)
{
    const std::filesystem::path top = std::filesystem::path(testing::TempDir()) / "gpuq-words";
    std::filesystem::create_directories(top / "training");
    std::ofstream(top / "train.py") << "";
    std::ofstream(top / ".hidden") << "";
    const std::string begin = top.string() + "/";
    EXPECT_THAT(paths_beginning_with(begin + "tra"),
                testing::UnorderedElementsAre(begin + "train.py", begin + "training/"));
    EXPECT_THAT(paths_beginning_with(begin), Not(Contains(begin + ".hidden")));
    EXPECT_THAT(paths_beginning_with(begin + ".h"), ElementsAre(begin + ".hidden"));
    EXPECT_THAT(paths_beginning_with(begin + "no/such"), IsEmpty());
    std::filesystem::remove_all(top);
}

class EnvironmentNames : public testing::Test {
protected:
    void make_environment(const std::string& path) const
    {
        std::filesystem::create_directories(top / path / "conda-meta");
    }
    void make_file(const std::string& path, const std::string& text = "") const
    {
        std::filesystem::create_directories((top / path).parent_path());
        std::ofstream(top / path) << text;
    }
    void TearDown() override { std::filesystem::remove_all(top); }

    const std::filesystem::path top =
        std::filesystem::path(testing::TempDir()) / "gpuq-environments";
    FakeServices services;
};

TEST_F(EnvironmentNames, OfConda)
{
    EXPECT_THAT(conda_environments(services), ElementsAre("base"));
    make_environment("conda/envs/torch");
    make_environment("home/.conda/envs/own");
    make_environment("lab/envs/shared");
    make_environment("elsewhere/jax");
    make_file("conda/bin/conda");
    make_file("conda/envs/notes.txt");
    make_file("home/.conda/environments.txt", (top / "conda/envs/torch").string() + "\n" +
                                                  (top / "elsewhere/jax").string() + "\n/gone\n");
    services.variables = {{"HOME", top / "home"},
                          {"CONDA_EXE", top / "conda/bin/conda"},
                          {"CONDA_ENVS_PATH", (top / "lab/envs").string() + "::/none"}};
    EXPECT_THAT(conda_environments(services),
                testing::UnorderedElementsAre("base", "shared", "torch", "own",
                                              (top / "elsewhere/jax").string()));
}

TEST_F(EnvironmentNames, OfModules)
{
    EXPECT_THAT(environment_modules(services), IsEmpty());
    make_file("lmod/cuda/12.4.lua");
    make_file("lmod/cuda/.version");
    make_file("tcl/gcc");
    services.variables["MODULEPATH"] =
        (top / "lmod").string() + ":" + (top / "tcl").string() + ":/none";
    EXPECT_THAT(environment_modules(services),
                testing::UnorderedElementsAre("cuda", "cuda/12.4", "gcc"));
}

} // namespace
} // namespace gpuq::cli
