// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/findings_output.h"
#include "cli/commands/verbs.h"
#include "cli/render/free_table.h"
#include "cli/render/profile_text.h"
#include "cli/render/run_table.h"
#include "core/layout.h"
#include "runs/notebook.h"
#include "runs/records/journal.h"
#include "tui/keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

/// Checks that the pages of logs, ls and stop and gpuq-files(5) agree with the code.
namespace gpuq::cli {
namespace {

using testing::HasSubstr;

std::string page(const std::string& name)
{
    std::ifstream stream(GPUQ_MAN_DIR "/" + name);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// The page as plain text: without fonts and escapes.
std::string plain(const std::string& name)
{
    const std::string text = page(name);
    const std::string lines = std::regex_replace(text, std::regex("(^|\n)\\.[BI]R?I? "), "$1");
    return std::regex_replace(lines, std::regex("\\\\(?=[-~])"), "");
}

const std::array<std::pair<std::string, const Verb*>, 13> k_pages = {
    {{"gpuq-logs.1", &k_logs_verb},
     {"gpuq-ls.1", &k_ls_verb},
     {"gpuq-stop.1", &k_stop_verb},
     {"gpuq-free.1", &k_free_verb},
     {"gpuq-reserve.1", &k_reserve_verb},
     {"gpuq-top.1", &k_top_verb},
     {"gpuq-why.1", &k_why_verb},
     {"gpuq-show.1", &k_show_verb},
     {"gpuq-diff.1", &k_diff_verb},
     {"gpuq-connect.1", &k_connect_verb},
     {"gpuq-code.1", &k_code_verb},
     {"gpuq-tensorboard.1", &k_tensorboard_verb},
     {"gpuq-profile.1", &k_profile_verb}}};

std::string tag_of(const Option& option)
{
    const std::string name = std::regex_replace(std::string(option.name), std::regex("-"), "\\-");
    if (option.letter == 0 && !option.value.empty()) {
        return fmt::format("\n.TP\n.BI \\-\\-{} \" {}\"\n", name, option.value);
    }
    return option.letter == 0
               ? fmt::format("\n.TP\n.B \\-\\-{}\n", name)
               : fmt::format("\n.TP\n.BR \\-{} \", \" \\-\\-{}\n", option.letter, name);
}

TEST(VerbPages, HaveEveryOption)
{
    for (const auto& [name, verb] : k_pages) {
        for (const Option& option : verb->options) {
            if (option.state != Option::State::hidden) {
                EXPECT_THAT(page(name), HasSubstr(tag_of(option)));
            }
        }
    }
}

TEST(VerbPages, HaveEveryKeyOfTop)
{
    for (const tui::KeyRow& key : tui::k_keys) {
        std::string tag = fmt::format("\n.TP\n.B {}\n", key.keys);
        for (std::size_t at = 0; (at = tag.find('-', at)) != std::string::npos; at += 2) {
            tag.insert(at, 1, '\\');
        }
        EXPECT_THAT(page("gpuq-top.1"), HasSubstr(tag));
    }
}

TEST(VerbPages, HaveEveryColumnOfLs)
{
    for (const report::Column& column : run_table({}, Time()).columns) {
        EXPECT_THAT(page("gpuq-ls.1"), HasSubstr(fmt::format("\n.TP\n.B {}\n", column.name)));
    }
}

TEST(VerbPages, HaveEveryColumnOfFree)
{
    for (const report::Table& table : {free_table({}), next_table({}, Time())}) {
        for (const report::Column& column : table.columns) {
            EXPECT_THAT(plain("gpuq-free.1"), testing::ContainsRegex("\n" + column.name + "[ \n]"));
        }
    }
}

TEST(VerbPages, HaveEveryWordOfAProfile)
{
    const std::string text = page("gpuq-profile.1");
    const std::string page_text =
        std::regex_replace(plain("gpuq-profile.1"), std::regex("\n"), " ");
    for (std::size_t i = 0; i < telemetry::k_phases; ++i) {
        EXPECT_THAT(page_text,
                    HasSubstr(std::string(telemetry::row(static_cast<telemetry::Phase>(i)).title)));
    }
    for (std::size_t i = 0; i < telemetry::k_measures; ++i) {
        EXPECT_THAT(page_text, HasSubstr(std::string(
                                   telemetry::row(static_cast<telemetry::Measure>(i)).title)));
    }
    for (const std::string_view code : telemetry::advice_codes()) {
        EXPECT_THAT(text, HasSubstr(fmt::format("\n.TP\n.B {}\n", code)));
    }
    const WholeProfile none{
        RunStatus{RunKey::make(Time(), {1, 2, 3, 4, 5, 6, 7, 8})}, {}, {}, {}, {}};
    for (const report::Column& column : measures_table(none).columns) {
        EXPECT_THAT(text, HasSubstr(fmt::format("\n.TP\n.B {}\n", column.name)));
    }
}

TEST(VerbPages, HaveEveryMemberOfTheJsonOfLs)
{
    const RunKey key = RunKey::make(Time(), {1, 2, 3, 4, 5, 6, 7, 8});
    RunStatuses statuses;
    statuses.runs.push_back(RunStatus{key});
    const std::string document = report::json_document(run_list(statuses, {}, Time()));
    const std::regex member("\"([a-z_]+)\":");
    int members = 0;
    for (std::sregex_iterator at(document.begin(), document.end(), member);
         at != std::sregex_iterator(); ++at, ++members) {
        if ((*at)[1] != "schema") {
            EXPECT_THAT(plain("gpuq-ls.1"), HasSubstr((*at)[1].str()));
        }
    }
    EXPECT_GT(members, 20);
}

TEST(FilesPage, HasEveryFileOfTheLayout)
{
    const std::string text = plain("gpuq-files.5");
    const RunKey key = RunKey::make(Time(), {1, 2, 3, 4, 5, 6, 7, 8});
    const LinkNumber link{1};
    for (std::string path :
         {layout::run_json(key), layout::inbox(key), layout::ended_json(key),
          layout::shown_json(key), layout::job_json(key, link), layout::claim(key, link),
          layout::log(key, link, Stream::out), layout::log(key, link, Stream::err),
          layout::order(key, link), layout::times(key, link), layout::journal(key, link),
          layout::heartbeat(key, link), layout::stop_file(key, link), layout::save_file(key, link),
          layout::checkpoints(key), layout::kept(key), layout::connect_dir(key),
          layout::active(key), layout::job_index("CLUSTER", JobId{7})}) {
        path = std::regex_replace(path, std::regex(key.text()), "KEY");
        path = std::regex_replace(path, std::regex("link-1"), "link-N");
        path = std::regex_replace(path, std::regex("/7$"), "/JOBID");
        EXPECT_THAT(text, HasSubstr(path));
    }
    for (const char* name :
         {layout::k_stop_request, layout::k_save_and_stop_request, layout::k_rehearsal_request,
          layout::k_connect_keys, layout::k_connect_identity, layout::k_connect_known_hosts,
          layout::k_connect_host_key, layout::k_connect_authorized, k_notebook_config,
          k_notebook_token, k_notebook_place}) {
        EXPECT_THAT(text, HasSubstr(name));
    }
}

TEST(FilesPage, HasEveryCause)
{
    for (int cause = 0; cause <= static_cast<int>(Cause::lost); ++cause) {
        EXPECT_THAT(page("gpuq-files.5"), HasSubstr(std::string(word(static_cast<Cause>(cause)))));
    }
}

TEST(VerbPages, AreCleanTroff)
{
    if (std::system("command -v man groff >/dev/null") != 0) {
        GTEST_SKIP() << "man is not installed";
    }
    int pages = 0;
    for (const auto& entry : std::filesystem::directory_iterator(GPUQ_MAN_DIR)) {
        const std::string name = entry.path().filename();
        ++pages;
        const std::string command =
            fmt::format("LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 "
                        "-Z '{}/{}' 2>&1 >/dev/null",
                        GPUQ_MAN_DIR, name);
        std::FILE* man = popen(command.c_str(), "r");
        std::string complaints;
        for (int c = std::fgetc(man); c != EOF; c = std::fgetc(man)) {
            complaints += static_cast<char>(c);
        }
        EXPECT_EQ(pclose(man), 0) << name;
        EXPECT_EQ(complaints, "") << name;
    }
    EXPECT_GT(pages, 7);
}

TEST(VerbPages, HaveEveryColumnAndLevelOfDoctor)
{
    const std::string text = page("gpuq-doctor.1");
    for (const report::Column& column : findings_table({}).columns) {
        EXPECT_THAT(text, HasSubstr(column.name));
    }
    using Level = Finding::Level;
    for (const Level level : {Level::ok, Level::warning, Level::problem, Level::unknown}) {
        EXPECT_THAT(text, HasSubstr("\n.BR " + std::string(word(level)))) << word(level);
    }
    EXPECT_THAT(text, HasSubstr("\n.TP\n.B \\-\\-nodes\n"));
    for (const auto& [name, value] : findings_list({})) {
        EXPECT_THAT(text, HasSubstr(name));
    }
}

} // namespace
} // namespace gpuq::cli
