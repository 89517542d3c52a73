// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/completion_scripts.h"

#include "cli/commands/verbs.h"
#include "cli/render/run_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

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

struct Completed {
    int status;
    std::string out;
};

Completed shell(const std::string& command)
{
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    std::string out;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
        out += static_cast<char>(c);
    }
    return {pclose(pipe), out};
}

Strings lines_of(const std::string& text)
{
    std::istringstream in(text);
    Strings lines;
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// The completions that bash offers for the last, incomplete word of `line`.
Strings offered(const std::string& line)
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

/// Splits a shell's answers into one list per input line; `--` ends each list.
std::vector<Strings> by_line(const std::string& text)
{
    std::vector<Strings> all;
    Strings one;
    for (std::string& word : lines_of(text)) {
        if (word == "--") {
            all.push_back(std::exchange(one, {}));
        } else {
            one.push_back(std::move(word));
        }
    }
    return all;
}

std::string quoted(const Strings& lines)
{
    std::string text;
    for (const std::string& line : lines) {
        text += fmt::format(" '{}'", line);
    }
    return text;
}

/// The completions that fish offers for each line: word, tab, description. Since release 4, fish
/// also lists words that contain the typed letters anywhere, but does not insert them while other
/// words begin with those letters.
std::vector<Strings> offered_by_fish(const Strings& lines)
{
    const File script("function gpuq; printf '41\\n42\\n'; end\n" + fish_completion() + R"(
for line in $argv
    complete -C $line
    printf '%s\n' --
end
)");
    auto all = by_line(shell("fish --no-config " + script.path() + quoted(lines)).out);
    for (std::size_t i = 0; i < std::min(all.size(), lines.size()); ++i) {
        for (std::string& word : all[i]) {
            word.erase(std::min(word.find('\t'), word.size()));
        }
        const std::string typed = lines[i].substr(lines[i].rfind(' ') + 1);
        std::erase_if(all[i], [&](const std::string& word) { return !word.starts_with(typed); });
    }
    return all;
}

/// The completions that zsh offers on Tab. Its completion functions work only on a terminal.
std::vector<Strings> offered_by_zsh(const Strings& lines)
{
    const File inside(R"(PROMPT=
autoload -U compinit
compinit -D -u
gpuq() { printf '41\n42\n' }
)" + zsh_completion() +
                      R"(
bindkey '^I' complete-word
bindkey '^U' kill-whole-line
zstyle ':completion:*' insert-tab false
compadd() {
    case "$*" in *-[OAD]\ *) builtin compadd "$@"; return ;; esac
    local -a offers
    builtin compadd -O offers "$@"
    print -rl -- offer:$^offers
    builtin compadd "$@"
}
finish() { print end-of-offers; comppostfuncs=(finish) }
comppostfuncs=(finish)
print set-up
)");
    const File outside(R"(zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "source $1"
while zpty -r z line; do [[ $line == *set-up* ]] && break; done
for typed in "${@:2}"; do
    zpty -w -n z $'\x15'"$typed"$'\t'
    while zpty -r z line; do
        line=${line%$'\r\n'}
        [[ $line == *end-of-offers* ]] && break
        [[ $line == *offer:* ]] && print -r -- ${line##*offer:}
    done
    print -r -- --
done
zpty -d z
)");
    return by_line(
        shell(fmt::format("timeout 60 zsh -f {} {}", outside.path(), inside.path()) + quoted(lines))
            .out);
}

TEST(BashCompletion, OffersVerbsAndGlobalOptions)
{
    EXPECT_EQ(offered("gpuq ru"), Strings{"run"});
    for (const Verb* verb : verbs()) {
        EXPECT_THAT(offered("gpuq "), Contains(std::string(verb->name)));
    }
    EXPECT_EQ(offered("gpuq --js"), Strings{"--json"});
    EXPECT_EQ(offered("gpuq --cluster x ru"), Strings{"run"});
}

TEST(BashCompletion, OffersOptionsOfTheVerb)
{
    EXPECT_EQ(offered("gpuq run --ti"), Strings{"--time"});
    EXPECT_EQ(offered("gpuq run --js"), Strings{"--json"});
    EXPECT_EQ(offered("gpuq run -t 2h --det"), Strings{"--detach"});
    EXPECT_EQ(offered("gpuq help --ti"), Strings{""});
    EXPECT_EQ(offered("gpuq run --arr"), Strings{""}); // reserved
}

TEST(BashCompletion, OffersWhatAnOptionOrVerbMayBe)
{
    EXPECT_EQ(offered("gpuq run --color "), (Strings{"auto", "always", "never"}));
    EXPECT_EQ(offered("gpuq cluster "), (Strings{"up", "down", "status", "env"}));
    EXPECT_EQ(offered("gpuq completion "), (Strings{"bash", "zsh", "fish"}));
    EXPECT_EQ(offered("gpuq help ru"), Strings{"run"});
}

TEST(BashCompletion, LeavesTheProgramToTheShell)
{
    EXPECT_THAT(offered("gpuq run -t 2h pyth"), Contains("python3"));
    EXPECT_EQ(offered("gpuq run prog --ti"), Strings{""}); // the program's option, not gpuq's
    EXPECT_EQ(offered("gpuq run -- prog --ti"), Strings{""});
}

/// The shell (or linter) must be installed and must accept the script without a message.
void expect_good_syntax(const std::string& name, const std::string& command,
                        const std::string& text)
{
    if (shell("command -v " + name).status != 0) {
        FAIL() << name << " is not installed; contrib/install-packages.sh installs it";
    }
    const File script(text);
    const Completed outcome = shell(command + " " + script.path());
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

TEST(EveryShell, OffersTheSame)
{
    const Strings runs = {"41", "42"};
    const std::vector<std::pair<std::string, Strings>> typed = {
        {"gpuq att", {"attach"}},
        {"gpuq attach ", runs},
        {"gpuq attach --ta", {"--take"}},
        {"gpuq connect ", runs},
        {"gpuq connect --conf", {"--config"}},
        {"gpuq clean --ke", {"--keep"}},
        {"gpuq clean --dr", {"--dry-run"}},
        {"gpuq extend ", runs},
        {"gpuq usage --cs", {"--csv"}},
        {"gpuq usage --le", {"--left"}},
        {"gpuq usage --tar", {"--targets"}},
        {"gpuq report ", runs},
        {"gpuq report --no-l", {"--no-logs"}},
        {"gpuq doctor --nod", {"--nodes"}},
        {"gpuq free --ne", {"--next"}},
        {"gpuq why ", runs},
        {"gpuq show ", runs},
        {"gpuq show --js", {"--json"}},
    };
    Strings lines;
    for (const auto& [line, expected] : typed) {
        lines.push_back(line);
    }
    const auto by_zsh = offered_by_zsh(lines);
    const auto by_fish = offered_by_fish(lines);
    ASSERT_EQ(by_zsh.size(), lines.size());
    ASSERT_EQ(by_fish.size(), lines.size());
    for (std::size_t i = 0; i < typed.size(); ++i) {
        const auto& [line, expected] = typed[i];
        const auto matches = testing::UnorderedElementsAreArray(expected);
        EXPECT_THAT(offered(line), matches) << line;
        EXPECT_THAT(by_zsh[i], matches) << line;
        EXPECT_THAT(by_fish[i], matches) << line;
    }
}

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

TEST(Completion, KeepsTheOrderOfTheRuns)
{
    EXPECT_THAT(bash_completion(), HasSubstr("compopt -o nosort"));
    EXPECT_THAT(bash_completion(), HasSubstr("*) _gpuq_runs \"$(gpuq ls "));
    EXPECT_THAT(zsh_completion(), HasSubstr("compadd -V runs -a runs"));
    EXPECT_THAT(zsh_completion(), HasSubstr("'*:run:_gpuq_runs'"));
    EXPECT_THAT(fish_completion(),
                HasSubstr("'__fish_seen_subcommand_from stop' -k -a '(gpuq ls "));
}

TEST(Completion, AsksForAColumnThatExists)
{
    EXPECT_THAT(bash_completion(), HasSubstr("gpuq ls --no-header --columns id "));
    EXPECT_TRUE(report::only(run_table({}, Time{}), "id"));
    EXPECT_EQ(offered("gpuq logs 4"), (Strings{"41", "42"}));
}

} // namespace
} // namespace gpuq::cli
