// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/preflight.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpuq {
namespace {

using testing::HasSubstr;
using File = SiteContext::File;
using Strings = std::vector<std::string>;

/// Files by path, and the text of scripts. The nodes share /home.
struct Disk {
    std::map<std::string, File> files;
    std::map<std::string, std::string> texts;
};

std::string without_dots(std::string path)
{
    const std::size_t at = path.find("/./");
    return at == std::string::npos ? path : path.erase(at, 2);
}

SiteContext on(const Disk& disk)
{
    SiteContext here;
    here.work_dir = "/home/ann";
    here.file = [disk](const std::string& path) {
        const auto found = disk.files.find(without_dots(path));
        return found == disk.files.end() ? File::missing : found->second;
    };
    here.text = [disk](const std::string& path) {
        const auto found = disk.texts.find(without_dots(path));
        return found == disk.texts.end() ? std::string() : found->second;
    };
    here.variable = [](const std::string& name) {
        return name == "PATH" ? std::optional<std::string>("/usr/bin:/home/ann/bin") : std::nullopt;
    };
    here.same_on_nodes = [](const std::string& path) { return path.starts_with("/home/"); };
    return here;
}

RunParameters parameters_for(const Strings& program)
{
    RunParameters parameters;
    parameters.program = program;
    return parameters;
}

/// `127: text`, `warning: text`, or an empty string.
std::string outcome(const RunParameters& parameters, const Disk& disk)
{
    const auto checked = check_program(parameters, on(disk));
    if (!checked) {
        return fmt::format("{}: {}", static_cast<int>(exit_status_of(checked.error().kind)),
                           checked.error().text);
    }
    return checked->empty() ? "" : "warning: " + *checked;
}

std::string outcome(const Strings& program, const Disk& disk = {})
{
    return outcome(parameters_for(program), disk);
}

TEST(Preflight, LetsStartWhatCanStart)
{
    const Disk disk{{{"/home/ann/run.sh", File::executable},
                     {"/home/ann/train.py", File::plain},
                     {"/usr/bin/python3", File::executable},
                     {"/home/ann/bin/tool.sh", File::executable}},
                    {{"/home/ann/run.sh", "#!/bin/bash\n"}}};
    for (const Strings& program : std::vector<Strings>{{"run.sh"},
                                                       {"./run.sh"},
                                                       {"/home/ann/run.sh"},
                                                       {"train.py"},
                                                       {"./train.py", "--lr", "1"},
                                                       {"python3", "train.py"},
                                                       {"python3", "-c", "pass"},
                                                       {"python3"},
                                                       {"tool.sh"}}) {
        EXPECT_EQ(outcome(program, disk), "") << program.back();
    }
}

TEST(Preflight, RefusesAProgramThatIsNotThere)
{
    EXPECT_EQ(outcome({"./nosuch"}), "127: ./nosuch: not found");
    EXPECT_EQ(outcome({"/home/ann/nosuch"}), "127: /home/ann/nosuch: not found");
    EXPECT_EQ(outcome({"nosuch.py"}),
              "127: nosuch.py: not found: neither in /home/ann nor in PATH");
    EXPECT_EQ(outcome({"nosuch.sh"}),
              "127: nosuch.sh: not found: neither in /home/ann nor in PATH");
    const Disk python{{{"/usr/bin/python3.11", File::executable}}, {}};
    EXPECT_EQ(outcome({"/usr/bin/python3.11", "nosuch.py"}, python), "127: nosuch.py: not found");
}

TEST(Preflight, RefusesAnInterpretersScriptThatIsNotThere)
{
    const Disk disk{{{"/usr/bin/python3", File::executable},
                     {"/usr/bin/bash", File::executable},
                     {"/usr/bin/perl", File::executable},
                     {"/usr/bin/torchrun", File::executable},
                     {"/usr/bin/accelerate", File::executable},
                     {"/usr/bin/deepspeed", File::executable},
                     {"/usr/bin/mpirun", File::executable},
                     {"/usr/bin/uv", File::executable},
                     {"/home/ann/bin/tool.sh", File::plain},
                     {"/home/ann/run.sh", File::plain}},
                    {}};
    for (const Strings& program :
         std::vector<Strings>{{"python3", "-u", "nosuch.py", "3"},
                              {"python3", "-X", "dev", "-Wignore", "nosuch.py"},
                              {"bash", "nosuch.py"},
                              {"bash", "-eux", "-o", "pipefail", "./nosuch.py"},
                              {"perl", "nosuch.py"},
                              {"torchrun", "--nproc-per-node", "2", "nosuch.py", "x.py"},
                              {"accelerate", "launch", "--multi_gpu", "nosuch.py", "--lr", "1"},
                              {"deepspeed", "--num_gpus=2", "nosuch.py", "--deepspeed"},
                              {"python3", "-u", "-m", "torch.distributed.run", "nosuch.py"},
                              {"mpirun", "-n", "2", "python3", "nosuch.py"},
                              {"uv", "run", "python3", "-u", "nosuch.py"}}) {
        EXPECT_THAT(outcome(program, disk), HasSubstr("nosuch.py: not found")) << program[0];
    }
    for (const Strings& program :
         std::vector<Strings>{{"bash", "run.sh"},
                              {"bash", "tool.sh"}, // found in PATH
                              {"bash", "-c", "nosuch.sh"},
                              {"bash", "-s", "nosuch.sh"},
                              {"bash", "--rcfile", "nosuch.sh", "run.sh"},
                              {"bash", "--version", "nosuch.sh"},
                              {"python3", "-m", "nosuch.py"},
                              {"python3", "-uc", "pass", "nosuch.py"},
                              {"python3", "-"},
                              {"python3", "--help", "nosuch.py"},
                              {"perl", "-S", "nosuch.pl"},
                              {"torchrun", "-m", "nosuch"},
                              {"accelerate", "launch", "-m", "nosuch"},
                              {"python3", "-m", "pdb", "nosuch.py"},
                              {"mpirun", "-wdir", "x", "python3", "no.py"},
                              {"mpirun", "nosuch.py"},
                              {"uv", "run", "--directory=x", "python3", "nosuch.py"},
                              {"torchrun", "--help"}}) {
        EXPECT_EQ(outcome(program, disk), "") << program[0] << " " << program.back();
    }
    EXPECT_EQ(outcome({"python", "nosuch.py"}, disk), "127: nosuch.py: not found")
        << "on whichever node";
    EXPECT_THAT(outcome({"python", "-m", "x"}, disk), HasSubstr("warning: python is not in PATH"));
    RunParameters sourced = parameters_for({"/usr/bin/bash", "nosuch.sh"});
    sourced.sources = {"/opt/cd.sh"};
    EXPECT_EQ(outcome(sourced, disk), "");
}

TEST(Preflight, RefusesWhatCanNotBeExecuted)
{
    const Disk disk{{{"/home/ann/dir", File::directory},
                     {"/home/ann/dir.py", File::directory},
                     {"/home/ann/script", File::plain},
                     {"/home/ann/script.sh", File::plain},
                     {"/home/ann/secret.py", File::unreadable},
                     {"/home/ann/fifo", File::other},
                     {"/usr/bin/python3", File::executable}},
                    {}};
    EXPECT_EQ(outcome({"./dir"}, disk), "126: ./dir: is a directory, not a program");
    EXPECT_EQ(outcome({"dir.py"}, disk), "126: dir.py: is a directory, not a program");
    EXPECT_EQ(outcome({"./fifo"}, disk), "126: ./fifo: not a regular file");
    EXPECT_EQ(outcome({"./script"}, disk),
              "126: ./script: not executable: chmod +x ./script, or name its interpreter: gpuq run "
              "bash ./script");
    EXPECT_THAT(outcome({"script.sh"}, disk), HasSubstr("126: script.sh: not executable"));
    EXPECT_EQ(outcome({"secret.py"}, disk),
              "126: secret.py: neither readable nor executable for you");
    EXPECT_EQ(outcome({"python3", "secret.py"}, disk), "126: secret.py: not readable for you");
}

TEST(Preflight, RefusesAScriptWhoseInterpreterIsNotThere)
{
    const auto of_script = [](const std::string& first_line) {
        const Disk disk{{{"/home/ann/run", File::executable},
                         {"/home/ann/plain", File::plain},
                         {"/bin/sh", File::executable}},
                        {{"/home/ann/run", first_line + "\nexit 0\n"}}};
        return outcome({"./run"}, disk);
    };
    EXPECT_EQ(of_script("#!/home/ann/gone/bin/python3"),
              "127: ./run: the interpreter in its first line, /home/ann/gone/bin/python3, does not "
              "exist");
    EXPECT_THAT(of_script("#! gone/sh -e"), HasSubstr("127: ./run: the interpreter"));
    EXPECT_THAT(of_script("#!/home/ann/plain"), HasSubstr("126: ./run: the interpreter"));
    EXPECT_THAT(of_script("#!/bin/sh\r"), HasSubstr("127: ./run: its first line ends with a "
                                                    "carriage return"));
    EXPECT_THAT(of_script("#!/usr/bin/env python3\r"), HasSubstr("carriage return"));
    for (const char* fine : {"#!/bin/sh", "#! /bin/sh -e", "#!/opt/node/bin/python3", "#!",
                             "#!/usr/bin/env python3", "\177ELF"}) {
        EXPECT_EQ(of_script(fine), "") << fine;
    }
}

TEST(Preflight, LetsATextWithoutAnInterpreterBeExecutedByAShell)
{
    const Disk disk{{{"/home/ann/run", File::executable},
                     {"/home/ann/train.py", File::executable},
                     {"/home/ann/bin/tool", File::executable},
                     {"/home/ann/bin/moved", File::executable}},
                    {{"/home/ann/run", "echo hi\n"},
                     {"/home/ann/train.py", "print(1)\n"},
                     {"/home/ann/bin/tool", "echo hi\n"},
                     {"/home/ann/bin/moved", "#!/home/ann/gone/python\n"}}};
    for (const char* program : {"./run", "run", "tool", "train.py", "./train.py"}) {
        EXPECT_EQ(outcome({program}, disk), "") << program;
    }
    EXPECT_THAT(outcome({"moved"}, disk),
                HasSubstr("127: moved: the interpreter in its first line"))
        << "also of a command in PATH";
}

TEST(Preflight, RefusesAPipeOfThisShell)
{
    const Disk disk{{{"/dev/fd/63", File::other},
                     {"/dev/fd/0", File::other},
                     {"/usr/bin/bash", File::executable},
                     {"/usr/bin/train", File::executable}},
                    {}};
    const std::string why = "a pipe of this shell, as <(...) makes it, which the node can't read: "
                            "write the text to a file";
    for (const Strings& program :
         std::vector<Strings>{{"bash", "/dev/fd/63"}, {"train", "--config", "/dev/fd/63"}}) {
        EXPECT_EQ(outcome(program, disk), "2: /dev/fd/63: " + why);
    }
    EXPECT_EQ(outcome({"bash", "/dev/fd/0"}, disk), "");
    EXPECT_EQ(outcome({"train", "/dev/fd/4"}, disk), "") << "nothing here: not of this shell";
    RunParameters sourced = parameters_for({"train"});
    sourced.sources = {"/dev/fd/63"};
    EXPECT_EQ(outcome(sourced, disk), "2: --source /dev/fd/63: " + why);
}

TEST(Preflight, ChecksTheCheckOfACheckpoint)
{
    const Disk disk{{{"/usr/bin/python3", File::executable},
                     {"/usr/bin/true", File::executable},
                     {"/home/ann/check.py", File::plain},
                     {"/home/ann/check", File::executable}},
                    {}};
    const auto valid = [&](const Strings& command) {
        RunParameters parameters = parameters_for({"true"});
        parameters.chain.valid = command;
        return outcome(parameters, disk);
    };
    EXPECT_EQ(valid({"./nosuch", "{}"}), "2: --valid: ./nosuch: not found");
    EXPECT_EQ(valid({"python3", "nosuch.py", "{}"}), "2: --valid: nosuch.py: not found");
    EXPECT_EQ(valid({"check.py"}), "2: --valid: check.py: not found in PATH; for a file of the "
                                   "working directory, write ./check.py");
    EXPECT_THAT(valid({"./check.py"}), HasSubstr("2: --valid: ./check.py: not executable"));
    EXPECT_EQ(valid({"check"}),
              "warning: --valid: check is not in PATH on this host; the node may have it");
    for (const Strings& fine : std::vector<Strings>{{"./check", "{}"},
                                                    {"python3", "check.py", "{}"},
                                                    {"python3", "{}"},
                                                    {"{}/check"},
                                                    {"/opt/node/check"}}) {
        EXPECT_EQ(valid(fine), "") << fine[0];
    }
}

TEST(Preflight, LeavesWordsWithValuesToTheirTries)
{
    RunParameters parameters = parameters_for({"python3", "train_{model}.py", "{lr}"});
    const Disk disk{{{"/usr/bin/python3", File::executable}}, {}};
    EXPECT_EQ(outcome(parameters, disk), "127: train_{model}.py: not found");
    parameters.placeholders = {"{lr}", "{model}"};
    EXPECT_EQ(outcome(parameters, disk), "");
}

TEST(Preflight, LeavesToTheNodeWhatOnlyItCanKnow)
{
    const Strings on_node = {"/opt/node/prog"};
    EXPECT_EQ(outcome(on_node), "");
    EXPECT_EQ(outcome({"/usr/bin/nvidia-smi"}), "");
    EXPECT_EQ(outcome({"nvidia-smi"}),
              "warning: nvidia-smi is not in PATH on this host; the node may have it");
    RunParameters parameters = parameters_for({"tool.py"});
    parameters.modules = {"tools"};
    EXPECT_EQ(outcome(parameters, {}), "");
    parameters = parameters_for({"tool.py"});
    parameters.conda = "torch";
    EXPECT_EQ(outcome(parameters, {}), "");
    parameters = parameters_for({"tool.py"});
    parameters.env = {{"PATH", "/opt/bin"}};
    EXPECT_EQ(outcome(parameters, {}), "");
    parameters = parameters_for({"./in-image"});
    parameters.container = "docker://image";
    EXPECT_EQ(outcome(parameters, {}), "");
    parameters = parameters_for({"./built-by-the-run-before"});
    parameters.after = JobId{7};
    EXPECT_EQ(outcome(parameters, {}), "");
}

TEST(Preflight, ChecksTheProgramBehindAWrapper)
{
    const Disk disk{{{"/usr/bin/env", File::executable},
                     {"/usr/bin/nice", File::executable},
                     {"/usr/bin/nohup", File::executable},
                     {"/usr/bin/timeout", File::executable},
                     {"/usr/bin/stdbuf", File::executable},
                     {"/usr/bin/python3", File::executable},
                     {"/home/ann/train.py", File::plain},
                     {"/home/ann/run.sh", File::executable}},
                    {}};
    for (const Strings& program :
         std::vector<Strings>{{"env", "LR=0.1", "python3", "nosuch.py"},
                              {"/usr/bin/env", "-u", "LR", "A=1", "python3", "nosuch.py"},
                              {"nice", "-n", "5", "python3", "nosuch.py"},
                              {"nice", "-n5", "--", "python3", "nosuch.py"},
                              {"timeout", "-k", "5", "--signal=INT", "1h", "python3", "nosuch.py"},
                              {"stdbuf", "-oL", "nice", "python3", "-u", "nosuch.py"}}) {
        EXPECT_EQ(outcome(program, disk), "127: nosuch.py: not found") << program.front();
    }
    EXPECT_EQ(outcome({"nohup", "./nosuch"}, disk), "127: ./nosuch: not found");
    EXPECT_THAT(outcome({"nohup", "./train.py"}, disk), HasSubstr("126: ./train.py: not exec"));
    EXPECT_THAT(outcome({"nohup", "run.sh"}, disk), HasSubstr("127: run.sh: not found in PATH"));
    for (const Strings& program :
         std::vector<Strings>{{"env"},
                              {"env", "A=1"},
                              {"env", "python3", "train.py"},
                              {"env", "-C", "dir", "./nosuch"},
                              {"env", "--chdir=dir", "./nosuch"},
                              {"env", "-S", "./nosuch"},
                              {"env", "PATH=dir", "nosuch.sh"},
                              {"timeout", "./nosuch"},
                              {"timeout", "--new-option", "1h", "./nosuch"},
                              {"nice", "./run.sh", "./nosuch"}}) {
        EXPECT_EQ(outcome(program, disk), "") << program.back();
    }
}

TEST(Preflight, RefusesWhatOnlyAShellUnderstands)
{
    const Disk disk{{{"/home/ann/a b", File::executable}, {"/usr/bin/true", File::executable}}, {}};
    EXPECT_THAT(outcome({"LR=0.1", "true"}, disk), HasSubstr("127: LR=0.1: not found; to set a "
                                                             "variable, write --env LR=0.1"));
    EXPECT_THAT(outcome({"echo a"}, disk), HasSubstr("127: echo a: not found; give the program"));
    EXPECT_THAT(outcome({"cd", "/"}, disk), HasSubstr("127: cd: a command of the shell"));
    EXPECT_EQ(outcome({"a b"}, disk), "");
    EXPECT_THAT(outcome({"2x=1"}, disk), HasSubstr("warning: 2x=1 is not in PATH"));
}

TEST(Preflight, LooksForTheFilesOfOptions)
{
    const Disk disk{{{"/home/ann/env.sh", File::plain},
                     {"/home/ann/secret.sh", File::unreadable},
                     {"/home/ann/venv", File::directory},
                     {"/home/ann/venv/bin/python", File::executable},
                     {"/home/ann/copied", File::directory},
                     {"/home/ann/copied/bin/python", File::plain},
                     {"/home/ann/empty", File::directory}},
                    {}};
    const auto with = [&](const auto& set) {
        RunParameters parameters = parameters_for({"/opt/node/prog"});
        set(parameters);
        return outcome(parameters, disk);
    };
    const auto source = [&](const std::string& file) {
        return with([&](RunParameters& parameters) { parameters.sources = {"env.sh", file}; });
    };
    EXPECT_EQ(source("/home/ann/env.sh"), "");
    EXPECT_EQ(source("/etc/profile.d/node.sh"), "");
    EXPECT_EQ(source("nosuch.sh"), "2: --source nosuch.sh: not found");
    EXPECT_EQ(source("venv"), "2: --source venv: is a directory");
    EXPECT_EQ(source("secret.sh"), "2: --source secret.sh: not readable for you");
    const auto venv = [&](const std::string& directory) {
        return with([&](RunParameters& parameters) { parameters.venv = directory; });
    };
    EXPECT_EQ(venv("venv"), "");
    EXPECT_EQ(venv("/opt/venv"), "");
    EXPECT_EQ(venv("nosuch"), "2: --venv nosuch: not found");
    EXPECT_THAT(venv("empty"), HasSubstr("2: --venv empty: has no bin/python"));
    EXPECT_EQ(venv("copied"), "2: --venv copied: its bin/python is not executable");
    EXPECT_EQ(with([](RunParameters& parameters) { parameters.container = "no.sif"; }),
              "2: --container no.sif: not found");
    EXPECT_EQ(with([](RunParameters& parameters) { parameters.container = "./no.sif"; }),
              "2: --container ./no.sif: not found");
    EXPECT_EQ(with([](RunParameters& parameters) { parameters.container = "docker://x/y"; }), "");
    EXPECT_EQ(with([](RunParameters& parameters) { parameters.conda = "/home/ann/gone"; }),
              "2: --conda /home/ann/gone: not found");
    EXPECT_EQ(with([](RunParameters& parameters) { parameters.conda = "torch"; }), "");
}

TEST(Preflight, ASourcedScriptMayChangeTheDirectory)
{
    RunParameters parameters = parameters_for({"./nosuch"});
    parameters.sources = {"/opt/cd.sh"};
    EXPECT_EQ(outcome(parameters, {}), "");
    parameters.program = {"/home/ann/nosuch"};
    EXPECT_EQ(outcome(parameters, {}), "127: /home/ann/nosuch: not found");
}

TEST(Preflight, ModulesDoNotMakeAPathAppear)
{
    RunParameters parameters = parameters_for({"./nosuch"});
    parameters.modules = {"tools"};
    parameters.conda = "torch";
    EXPECT_EQ(outcome(parameters, {}), "127: ./nosuch: not found");
}

} // namespace
} // namespace gpuq
