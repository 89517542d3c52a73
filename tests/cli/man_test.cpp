// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"
#include "cli/start/run_options.h"
#include "core/exit_status.h"
#include "core/job_variables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace gpuq::cli {
namespace {

using testing::HasSubstr;

const std::string k_general = GPUQ_MAN_DIR "/gpuq.1";
const std::string k_run = GPUQ_MAN_DIR "/gpuq-run.1";
const std::string k_shell = GPUQ_MAN_DIR "/gpuq-shell.1";
const std::string k_notebook = GPUQ_MAN_DIR "/gpuq-notebook.1";
const std::string k_rehearse = GPUQ_MAN_DIR "/gpuq-rehearse.1";
const std::string k_sweep_page = GPUQ_MAN_DIR "/gpuq-sweep.1";
const std::string k_again = GPUQ_MAN_DIR "/gpuq-again.1";
const std::string k_attach = GPUQ_MAN_DIR "/gpuq-attach.1";
const std::string k_cluster = GPUQ_MAN_DIR "/gpuq-cluster.1";

std::string text_of(const std::string& path)
{
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// In troff spelling: `\-\-dry\-run`.
std::string in_troff(std::string_view text)
{
    std::string result;
    for (const char c : text) {
        result += c == '-' ? "\\-" : std::string(1, c);
    }
    return result;
}

/// Whether the page documents the option: it must appear in a paragraph's tag (a .TP line that
/// begins with a font macro).
bool documents(const std::string& page, const Option& option)
{
    const std::string name =
        "\\\\-\\\\-" + std::regex_replace(std::string(option.name), std::regex("-"), "\\\\-");
    const std::string letter =
        option.letter == 0 ? "" : fmt::format(".*\\\\-{}\\b.*", option.letter);
    return std::regex_search(
        page, std::regex("\\n\\.TP\\n\\.B[IR]? " + letter + ".*" + name + "(?![\\\\a-z])"));
}

/// The section about one verb.
std::string section_of(const std::string& page, const Verb& verb)
{
    const std::size_t begin = page.find("\n.SS " + in_troff(verb.synopsis) + "\n");
    if (begin == std::string::npos) {
        return "";
    }
    const std::size_t next = page.find("\n.SS ", begin + 1);
    return page.substr(begin, std::min(next, page.find("\n.SH ", begin)) - begin);
}

TEST(ManPages, HaveEveryVerb)
{
    const std::string page = text_of(k_general);
    for (const Verb* verb : verbs()) {
        EXPECT_NE(section_of(page, *verb), "") << verb->synopsis;
    }
}

TEST(ManPages, HaveEveryOption)
{
    const std::string general = text_of(k_general);
    const std::string run = text_of(k_run);
    for (const Verb* verb : verbs()) {
        // The pages of rehearse and again refer to gpuq-run(1) for the options they share.
        const std::string page = verb->name == "run"        ? run
                                 : verb->name == "shell"    ? text_of(k_shell)
                                 : verb->name == "notebook" ? text_of(k_notebook)
                                 : verb->name == "rehearse" ? text_of(k_rehearse) + run
                                 : verb->name == "again"    ? text_of(k_again) + run
                                 : verb->name == "sweep"    ? text_of(k_sweep_page) + run
                                                            : section_of(general, *verb);
        for (const Option& option : verb->options) {
            const bool built = option.state == Option::State::built;
            EXPECT_EQ(documents(page, option), built) << verb->name << " --" << option.name;
        }
    }
    for (const Option& option : find_verb(every_verb(), "attach")->options) {
        const bool built = option.state == Option::State::built;
        EXPECT_EQ(documents(text_of(k_attach), option), built) << "--" << option.name;
    }
    for (const Option& option : find_verb(every_verb(), "cluster")->options) {
        EXPECT_TRUE(documents(text_of(k_cluster), option)) << "--" << option.name;
    }
    for (const Option& option : global_options()) {
        const bool built = option.state == Option::State::built;
        EXPECT_EQ(documents(general, option), built) << "--" << option.name;
    }
}

/// Names of the options in the tags of a page.
std::set<std::string> options_in(const std::string& page)
{
    std::set<std::string> names;
    const std::regex tag("\\n\\.TP\\n\\.B[IR]? [^\\n]*?\\\\-\\\\-([a-z\\\\-]+)");
    for (std::sregex_iterator at(page.begin(), page.end(), tag); at != std::sregex_iterator();
         ++at) {
        names.insert(std::regex_replace((*at)[1].str(), std::regex("\\\\"), ""));
    }
    return names;
}

TEST(ManPages, HaveNoOptionThatDoesNotExist)
{
    std::set<std::string> known = {"version"};
    for (const Verb* verb : verbs()) {
        for (const Option& option : all_options(*verb)) {
            if (option.state == Option::State::built) {
                known.insert(std::string(option.name));
            }
        }
    }
    for (const std::string& page : {text_of(k_general), text_of(k_run), text_of(k_shell),
                                    text_of(k_notebook), text_of(k_cluster)}) {
        const auto names = options_in(page);
        EXPECT_GT(names.size(), 5U);
        for (const std::string& name : names) {
            EXPECT_TRUE(known.contains(name)) << "--" << name;
        }
    }
}

TEST(ManPages, HaveEveryExitStatus)
{
    const std::string page = text_of(k_general);
    for (const auto status :
         {ExitStatus::usage, ExitStatus::lost, ExitStatus::unreachable, ExitStatus::refused,
          ExitStatus::max_wait, ExitStatus::stopped, ExitStatus::time_limit, ExitStatus::internal,
          ExitStatus::not_executable, ExitStatus::not_found, ExitStatus::detached,
          ExitStatus::interrupted}) {
        EXPECT_THAT(page, HasSubstr(fmt::format("\n.TP\n.B {}\n", static_cast<int>(status))));
    }
}

TEST(Man, ListsTheVariablesThatAreNotPassedOn)
{
    const std::string page = text_of(k_run);
    std::size_t rows = 0;
    for (const KeptBack& row : kept_back()) {
        const std::string names = std::regex_replace(std::string(row.names), std::regex(" "), ", ");
        EXPECT_THAT(page, HasSubstr(fmt::format(".TP\n.I {}\n{}\n", row.what, names)));
        ++rows;
    }
    const std::size_t begin = page.find(".SS Not passed on");
    const std::string section = page.substr(begin, page.find(".PP", begin) - begin);
    std::size_t listed = 0;
    for (std::size_t at = 0; (at = section.find("\n.I ", at)) != std::string::npos; ++at) {
        ++listed;
    }
    EXPECT_EQ(listed, rows);
}

} // namespace
} // namespace gpuq::cli
