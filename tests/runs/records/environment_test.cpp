// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/environment.h"

#include "runs/stand_ins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using testing::HasSubstr;
using Strings = std::vector<std::string>;

/// Arguments with characters that are special to a shell.
const Strings k_hostile = {"a b", "", "$HOME", "`id`", "'\"", "line\nbreak", "*", "\xff\x01", "-n"};

Request showing(const Strings& arguments = k_hostile)
{
    Request request;
    request.program = {"show"};
    request.program.insert(request.program.end(), arguments.begin(), arguments.end());
    return request;
}

/// The output of `show`: the hostile arguments, and the variables set by the wrappers.
Strings shown(const std::string& module, const std::string& conda)
{
    Strings output = k_hostile;
    output.insert(output.end(), {"V=", "MODULE=" + module, "CONDA=" + conda,
                                 std::filesystem::current_path().string()});
    return output;
}

TEST(Environment, IsTheProgramAloneWhenNothingIsAsked)
{
    EXPECT_EQ(program_argv(showing()), showing().program);
}

TEST(Environment, LoadsModulesInOrder)
{
    const StandIns site;
    Request request = showing();
    request.setup.modules = {"gcc/12", "cuda;touch x"};
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.output, shown("[gcc/12][cuda;touch x]", ""));
    EXPECT_EQ(site.read("told"), "module load gcc/12\nmodule load cuda;touch x\n");
}

TEST(Environment, SaysWhichModuleIsMissing)
{
    const StandIns site;
    Request request = showing();
    request.setup.modules = {"gcc", "missing", "never"};
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("gpuq: --module missing could not be loaded on "));
    EXPECT_EQ(outcome.output, Strings{});
    EXPECT_EQ(site.read("told"), "module load gcc\nmodule load missing\n");
}

TEST(Environment, SaysThatANodeHasNoModules)
{
    const StandIns site;
    site.remove("init/bash");
    if (std::filesystem::exists("/etc/profile.d/modules.sh") ||
        std::filesystem::exists("/etc/profile.d/lmod.sh")) {
        GTEST_SKIP() << "this machine has environment modules";
    }
    Request request = showing();
    request.setup.modules = {"gcc"};
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("has no environment modules"));
}

TEST(Environment, ActivatesConda)
{
    const StandIns site;
    Request request = showing();
    request.setup.conda = "/opt/my env";
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.output, shown("", "(/opt/my env)"));
    EXPECT_EQ(site.read("told"), "conda activate /opt/my env\n");
}

TEST(Environment, SourcesFilesInOrder)
{
    const StandIns site;
    site.file("a b.sh", "echo noise; read line && export V=read; export V=\"$V[$#]\"; set -u -f\n");
    site.file("b.sh", "export V=\"$V(b)\"; trap 'echo never' EXIT; cd /\n");
    Request request = showing();
    request.setup.sources = {site.directory() + "/a b.sh", site.directory() + "/b.sh"};
    const auto outcome = site.run(program_argv(request));
    Strings expected = k_hostile;
    expected.insert(expected.end(), {"V=[0](b)", "MODULE=", "CONDA=", "/"});
    EXPECT_EQ(outcome.output, expected);
    EXPECT_EQ(outcome.error, "noise\n");
}

TEST(Environment, SaysWhichSourcedFileFails)
{
    const StandIns site;
    for (const auto& [text, status] :
         std::vector<std::pair<std::string, std::string>>{{"return 3", "3"},
                                                          {"exit 4", "4"},
                                                          {"exit 0", "0"},
                                                          {"false", "1"},
                                                          {"set -e; false; export V=never", "1"}}) {
        site.file("odd $x.sh", text + "\n");
        Request request = showing();
        request.setup.sources = {site.directory() + "/odd $x.sh"};
        const auto outcome = site.run(program_argv(request));
        EXPECT_EQ(outcome.status, 125) << text;
        EXPECT_THAT(outcome.error, HasSubstr("gpuq: --source ")) << text;
        EXPECT_THAT(outcome.error,
                    HasSubstr("odd\\ \\$x.sh ended with exit status " + status + " on "))
            << text;
        EXPECT_EQ(outcome.output, Strings{}) << text;
    }
    Request request = showing();
    request.setup.sources = {site.directory() + "/nosuch.sh"};
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("nosuch.sh can not be read on "));
}

TEST(Environment, ActivatesAVirtualEnvironment)
{
    const StandIns site;
    std::filesystem::create_directories(site.directory() + "/my venv/bin");
    for (const char* name : {"python", "python3"}) {
        site.file(std::string("my venv/bin/") + name,
                  "#!/bin/sh\nexec show \"$VIRTUAL_ENV\" \"$1\"\n");
        std::filesystem::permissions(site.directory() + "/my venv/bin/" + name,
                                     std::filesystem::perms::owner_all);
    }
    Request request;
    request.program = {"python3", "train.py"};
    request.setup.venv = site.directory() + "/my venv";
    auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.error, "");
    ASSERT_GE(outcome.output.size(), 2U);
    EXPECT_EQ(outcome.output[0], site.directory() + "/my venv");
    EXPECT_EQ(outcome.output[1], "train.py");

    request.setup.venv = site.directory() + "/nosuch";
    outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("nosuch: no bin/python in it on "));
}

TEST(Environment, SourcesFilesBeforeTheModules)
{
    const StandIns site;
    site.file("env.sh", "export MODULE=sourced V=\"$MODULE\"\n");
    Request request = showing({});
    request.setup.sources = {site.directory() + "/env.sh"};
    request.setup.modules = {"cuda"};
    request.setup.conda = "torch";
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.error, "");
    ASSERT_EQ(outcome.output.size(), 4U);
    EXPECT_EQ(outcome.output[1], "MODULE=sourced[cuda]");
    EXPECT_EQ(outcome.output[2], "CONDA=sourced[cuda](torch)");
}

TEST(Environment, SaysWhyCondaDoesNotWork)
{
    const StandIns site;
    Request request = showing();
    request.setup.conda = "missing";
    auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("gpuq: --conda missing could not be activated on "));

    site.program("conda", "exit 3\n");
    outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("bin/conda does not work on "));

    site.remove("bin/conda");
    outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.error, HasSubstr("gpuq: --conda: no conda in PATH on "));
    EXPECT_EQ(outcome.output, Strings{});
}

TEST(Environment, PutsTheProgramIntoAContainer)
{
    const StandIns site;
    Request request = showing();
    request.setup.container = "my image.sif";
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.output, shown("", ""));
    EXPECT_THAT(site.read("told"),
                testing::StartsWith("apptainer exec --nv my image.sif show a b"));
}

TEST(Environment, TakesTheSitesWordsForAContainer)
{
    EXPECT_EQ(container_arguments({"podman", "run", "--rm", "{image}"}, "x"),
              (Strings{"podman", "run", "--rm", "x"}));
    EXPECT_EQ(container_arguments({"enroot", "start", "--image={image}.sqsh"}, "{image}"),
              (Strings{"enroot", "start", "--image={image}.sqsh"}));
    EXPECT_EQ(container_arguments({"run-in"}, "x"), (Strings{"run-in", "x"}));
    Request request = showing({});
    request.setup.container = "x";
    request.setup.container_command = {"env", "IMAGE={image}"};
    EXPECT_EQ(program_argv(request), (Strings{"env", "IMAGE=x", "show"}));
}

TEST(Environment, NestsModulesCondaAndContainer)
{
    const StandIns site;
    Request request = showing();
    request.setup.modules = {"cuda"};
    request.setup.conda = "torch";
    request.setup.container = "img";
    const auto outcome = site.run(program_argv(request));
    EXPECT_EQ(outcome.error, "");
    // conda ran with the module loaded, the container with both.
    EXPECT_EQ(outcome.output, shown("[cuda]", "[cuda](torch)"));
    EXPECT_THAT(site.read("told"),
                testing::StartsWith("module load cuda\nconda activate torch\napptainer exec"));
}

TEST(Environment, EndsWithTheProgramsStatus)
{
    const StandIns site;
    site.program("fails", "exit 7\n");
    Request request;
    request.setup.modules = {"cuda"};
    request.setup.conda = "torch";
    for (const auto& [program, status] : std::vector<std::pair<Strings, int>>{
             {{"fails"}, 7}, {{"nosuch"}, 127}, {{"/tmp"}, 126}, {{"-odd"}, 127}}) {
        request.program = program;
        EXPECT_EQ(site.run(program_argv(request)).status, status) << program[0];
    }
}

} // namespace
} // namespace gpuq
