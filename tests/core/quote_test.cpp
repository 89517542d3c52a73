// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/quote.h"

#include "core/split_arguments.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <unistd.h>

namespace gpuq {
namespace {

/// The arguments that `sh` gets from `arguments`, each followed by a NUL.
std::string printed_by_shell(const std::string& arguments)
{
    const std::string path = testing::TempDir() + "gpuq-quote-test." + std::to_string(::getpid());
    std::FILE* script = std::fopen(path.c_str(), "w");
    const std::string text = "printf '%s\\0' " + arguments + "\n";
    std::fwrite(text.data(), 1, text.size(), script);
    std::fclose(script);
    std::FILE* shell = popen(("exec sh " + path).c_str(), "r");
    std::string printed;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
        printed += static_cast<char>(c);
    }
    pclose(shell);
    std::remove(path.c_str());
    return printed;
}

std::string with_nuls(const std::vector<std::string>& arguments)
{
    std::string text;
    for (const std::string& word : arguments) {
        text += word + '\0';
    }
    return text;
}

std::string random_word(std::mt19937& random)
{
    const std::string spice = "'\"\\$`!*?[]{}()<>|&;#~ \t\n=%-";
    std::string word;
    for (auto i = random() % 12; i > 0; --i) {
        word += random() % 2 == 0 ? spice[random() % spice.size()]
                                  : static_cast<char>(1 + random() % 255);
    }
    return word;
}

TEST(ShellQuoted, LeavesPlainWordsPlain)
{
    EXPECT_EQ(shell_command({"python3", "train.py", "--lr=1e-3", "a b", "", "it's", "$HOME"}),
              "python3 train.py --lr=1e-3 'a b' '' 'it'\\''s' '$HOME'");
}

TEST(ShellQuoted, MeansTheSameBytesToAShell)
{
    std::mt19937 random(42);
    std::vector<std::string> arguments;
    for (int i = 0; i < 3000; ++i) {
        arguments.push_back(random_word(random));
    }
    EXPECT_EQ(printed_by_shell(shell_command(arguments)), with_nuls(arguments));
}

TEST(SplitArguments, ReadsBackWhatWasQuoted)
{
    std::mt19937 random(43);
    for (int round = 0; round < 3000; ++round) {
        const std::vector<std::string> arguments = {random_word(random), random_word(random)};
        ASSERT_EQ(*split_arguments(shell_command(arguments)), arguments)
            << shell_command(arguments);
    }
}

TEST(SplitArguments, KeepsQuotedTextTogetherAndExpandsNothing)
{
    using Strings = std::vector<std::string>;
    EXPECT_EQ(
        *split_arguments(R"( --exclude=n1  --comment="a b" 'x y'z a\ b "" "q\"\\\n$X" $(id) * )"),
        (Strings{"--exclude=n1", "--comment=a b", "x yz", "a b", "", "q\"\\\\n$X", "$(id)", "*"}));
    EXPECT_EQ(*split_arguments(""), Strings{});
    EXPECT_EQ(*split_arguments(" \t\n"), Strings{});
}

TEST(SplitArguments, RefusesWhatIsNeverClosed)
{
    for (const char* line : {"'", "a 'b", "\"", "a\"b", "a\\", "\"a\\\""}) {
        EXPECT_FALSE(split_arguments(line)) << line;
    }
}

} // namespace
} // namespace gpuq
