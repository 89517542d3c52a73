// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/quote.h"

#include "core/words.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <unistd.h>

namespace gpuq {
namespace {

/// The arguments that `sh` gets from `words`, each followed by a NUL.
std::string said_by_shell(const std::string& words)
{
    const std::string path = testing::TempDir() + "gpuq-quote-test." + std::to_string(::getpid());
    std::FILE* script = std::fopen(path.c_str(), "w");
    const std::string text = "printf '%s\\0' " + words + "\n";
    std::fwrite(text.data(), 1, text.size(), script);
    std::fclose(script);
    std::FILE* shell = popen(("exec sh " + path).c_str(), "r");
    std::string said;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
        said += static_cast<char>(c);
    }
    pclose(shell);
    std::remove(path.c_str());
    return said;
}

std::string with_nuls(const std::vector<std::string>& words)
{
    std::string text;
    for (const std::string& word : words) {
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
    std::vector<std::string> words;
    for (int i = 0; i < 3000; ++i) {
        words.push_back(random_word(random));
    }
    EXPECT_EQ(said_by_shell(shell_command(words)), with_nuls(words));
}

TEST(SplitWords, ReadsBackWhatWasQuoted)
{
    std::mt19937 random(43);
    for (int round = 0; round < 3000; ++round) {
        const std::vector<std::string> words = {random_word(random), random_word(random)};
        ASSERT_EQ(*split_words(shell_command(words)), words) << shell_command(words);
    }
}

TEST(SplitWords, KeepsQuotedTextTogetherAndExpandsNothing)
{
    using Words = std::vector<std::string>;
    EXPECT_EQ(
        *split_words(R"( --exclude=n1  --comment="a b" 'x y'z a\ b "" "q\"\\\n$X" $(id) * )"),
        (Words{"--exclude=n1", "--comment=a b", "x yz", "a b", "", "q\"\\\\n$X", "$(id)", "*"}));
    EXPECT_EQ(*split_words(""), Words{});
    EXPECT_EQ(*split_words(" \t\n"), Words{});
}

TEST(SplitWords, RefusesWhatIsNeverClosed)
{
    for (const char* line : {"'", "a 'b", "\"", "a\"b", "a\\", "\"a\\\""}) {
        EXPECT_FALSE(split_words(line)) << line;
    }
}

} // namespace
} // namespace gpuq
