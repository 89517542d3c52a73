// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/completion.h"

#include "cli/run_table.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <sstream>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class File {
public:
    explicit File(const std::string& text) { std::ofstream(m_path) << text; }
    ~File() { std::remove(m_path.c_str()); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    const std::string& path() const { return m_path; }

private:
    static int next()
    {
        static int number = 0;
        return ++number;
    }
    std::string m_path =
        fmt::format("{}gpuq-completion-test.{}.{}", testing::TempDir(), ::getpid(), next());
};

struct Outcome {
    int status;
    std::string out;
};

Outcome shell(const std::string& command)
{
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    std::string out;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
        out += static_cast<char>(c);
    }
    return {pclose(pipe), out};
}

Words lines_of(const std::string& text)
{
    std::istringstream in(text);
    Words lines;
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// What bash offers after `line`, whose last word is being typed.
Words offered(const std::string& line)
{
    const File script(bash_completion() + R"(
COMP_WORDS=($LINE)
[ "${LINE% }" = "$LINE" ] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
gpuq() { echo "$*" >&2; printf '41\n42\n'; }
_gpuq 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
)");
    return lines_of(shell("LINE='" + line + "' bash --norc --noprofile " + script.path()).out);
}

/// What fish offers: a word, a tab and its description.
Words offered_by_fish(const std::string& line)
{
    const File script("function gpuq; printf '41\\n42\\n'; end\n" + fish_completion() +
                      fmt::format("complete -C '{}'\n", line));
    Words words = lines_of(shell("fish --no-config " + script.path()).out);
    for (std::string& word : words) {
        word.erase(std::min(word.find('\t'), word.size()));
    }
    return words;
}

/// What zsh offers to somebody who presses Tab: its own functions work in nothing but a terminal.
Words offered_by_zsh(const std::string& line)
{
    const File inside(R"(PROMPT=
autoload -U compinit
compinit -D -u
gpuq() { printf '41\n42\n' }
)" + zsh_completion() +
                      R"(
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
compadd() {
    case "$*" in *-[OAD]\ *) builtin compadd "$@"; return ;; esac
    local -a offers
    builtin compadd -O offers "$@"
    print -rl -- offer:$^offers
    builtin compadd "$@"
}
finish() { print end-of-offers }
comppostfuncs=(finish)
print set-up
)");
    const File outside(R"(zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "source $1"
while zpty -r z line; do [[ $line == *set-up* ]] && break; done
zpty -w z "$2"$'\t'
while zpty -r z line; do
    line=${line%$'\r\n'}
    [[ $line == *end-of-offers* ]] && break
    [[ $line == *offer:* ]] && print -r -- ${line##*offer:}
done
zpty -d z
)");
    return lines_of(
        shell(fmt::format("timeout 60 zsh -f {} {} '{}'", outside.path(), inside.path(), line))
            .out);
}

TEST(BashCompletion, OffersVerbsAndGlobalOptions)
{
    EXPECT_EQ(offered("gpuq ru"), Words{"run"});
    for (const Verb* verb : verbs()) {
        EXPECT_THAT(offered("gpuq "), Contains(std::string(verb->name)));
    }
    EXPECT_EQ(offered("gpuq --js"), Words{"--json"});
    EXPECT_EQ(offered("gpuq --cluster x ru"), Words{"run"});
}

TEST(BashCompletion, OffersOptionsOfTheVerb)
{
    EXPECT_EQ(offered("gpuq run --ti"), Words{"--time"});
    EXPECT_EQ(offered("gpuq run --js"), Words{"--json"});
    EXPECT_EQ(offered("gpuq run -t 2h --det"), Words{"--detach"});
    EXPECT_EQ(offered("gpuq help --ti"), Words{""});
    EXPECT_EQ(offered("gpuq run --arr"), Words{""}); // reserved
}

TEST(BashCompletion, OffersWhatAnOptionOrVerbMayBe)
{
    EXPECT_EQ(offered("gpuq run --color "), (Words{"auto", "always", "never"}));
    EXPECT_EQ(offered("gpuq cluster "), (Words{"up", "down", "status", "env"}));
    EXPECT_EQ(offered("gpuq completion "), (Words{"bash", "zsh", "fish"}));
    EXPECT_EQ(offered("gpuq help ru"), Words{"run"});
}

TEST(BashCompletion, LeavesTheProgramToTheShell)
{
    EXPECT_THAT(offered("gpuq run -t 2h pyth"), Contains("python3"));
    EXPECT_EQ(offered("gpuq run prog --ti"), Words{""}); // its option, not ours
    EXPECT_EQ(offered("gpuq run -- prog --ti"), Words{""});
}

/// A shell that is here reads its script without a complaint.
void expect_good_syntax(const std::string& name, const std::string& command,
                        const std::string& text)
{
    if (shell("command -v " + name).status != 0) {
        FAIL() << name << " is not installed; contrib/install-packages.sh installs it";
    }
    const File script(text);
    const Outcome outcome = shell(command + " " + script.path());
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    EXPECT_EQ(outcome.out, "");
}

TEST(BashCompletion, IsGoodBash)
{
    expect_good_syntax("bash", "bash -n", bash_completion());
    expect_good_syntax("shellcheck", "shellcheck -s bash -S warning -e SC2207", bash_completion());
}

TEST(ZshCompletion, IsGoodZsh)
{
    expect_good_syntax("zsh", "zsh -n", zsh_completion());
}

TEST(FishCompletion, IsGoodFish)
{
    expect_good_syntax("fish", "fish -n", fish_completion());
}

struct Typed {
    std::string line;
    Words offered;
};

void PrintTo(const Typed& typed, std::ostream* out)
{
    *out << typed.line;
}

class EveryShell : public testing::TestWithParam<Typed> {};

TEST_P(EveryShell, OffersTheSame)
{
    const auto& [line, expected] = GetParam();
    EXPECT_THAT(offered(line), testing::UnorderedElementsAreArray(expected));
    EXPECT_THAT(offered_by_zsh(line), testing::UnorderedElementsAreArray(expected));
    EXPECT_THAT(offered_by_fish(line), testing::UnorderedElementsAreArray(expected));
}

const Words k_runs = {"41", "42"};

INSTANTIATE_TEST_SUITE_P(
    Completion, EveryShell,
    testing::Values(Typed{"gpuq att", {"attach"}}, Typed{"gpuq attach ", k_runs},
                    Typed{"gpuq attach --ta", {"--take"}}, Typed{"gpuq connect ", k_runs},
                    Typed{"gpuq connect --conf", {"--config"}},
                    Typed{"gpuq clean --ke", {"--keep"}}, Typed{"gpuq clean --dr", {"--dry-run"}},
                    Typed{"gpuq extend ", k_runs}, Typed{"gpuq usage --cs", {"--csv"}},
                    Typed{"gpuq usage --le", {"--left"}}, Typed{"gpuq usage --tar", {"--targets"}},
                    Typed{"gpuq report ", k_runs}, Typed{"gpuq report --no-l", {"--no-logs"}},
                    Typed{"gpuq doctor --nod", {"--nodes"}}, Typed{"gpuq free --ne", {"--next"}},
                    Typed{"gpuq why ", k_runs}, Typed{"gpuq show ", k_runs},
                    Typed{"gpuq show --js", {"--json"}}));

TEST(Completion, KnowsEveryVerbAndOption)
{
    const std::vector<std::pair<std::string, std::string>> scripts = {
        {bash_completion(), "--"}, {zsh_completion(), "'*--"}, {fish_completion(), " -l "}};
    for (const auto& [text, before] : scripts) {
        for (const Verb* verb : verbs()) {
            EXPECT_THAT(text, HasSubstr(std::string(verb->name)));
            for (const Option& option : all_options(*verb)) {
                const bool built = option.state == Option::State::built;
                EXPECT_EQ(text.find(before + std::string(option.name)) != std::string::npos, built)
                    << option.name;
            }
        }
    }
}

TEST(Completion, AsksForAColumnThatExists)
{
    EXPECT_THAT(bash_completion(), HasSubstr("gpuq ls --no-header --columns id "));
    EXPECT_TRUE(report::only(run_table({}, Time{}), "id"));
    EXPECT_EQ(offered("gpuq logs 4"), (Words{"41", "42"}));
}

} // namespace
} // namespace gpuq::cli
