// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_facts.h"

#include <algorithm>
#include <array>
#include <map>

namespace gpuq::remote {
namespace {

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& arguments)
{
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
}

/// True if none of the listed files can store keys.
bool keeps_nothing(std::string_view files)
{
    while (!files.empty()) {
        const std::size_t end = std::min(files.find(' '), files.size());
        if (!is_one_of(files.substr(0, end),
                       std::array<std::string_view, 2>{"/dev/null", "none"})) {
            return false;
        }
        files.remove_prefix(std::min(end + 1, files.size()));
    }
    return true;
}

} // namespace

std::vector<SshSetting> ssh_settings_in(std::string_view text)
{
    std::vector<SshSetting> settings;
    for (auto begin = text.begin(); begin != text.end();) {
        const auto end = std::find(begin, text.end(), '\n');
        const auto space = std::find(begin, end, ' ');
        settings.push_back({{begin, space}, {space == end ? end : space + 1, end}});
        begin = end == text.end() ? end : end + 1;
    }
    return settings;
}

SshFacts ssh_facts_from(std::string_view text)
{
    std::map<std::string_view, std::string_view> values; // the first of each
    for (const SshSetting& setting : ssh_settings_in(text)) {
        values.try_emplace(setting.keyword, setting.value);
    }
    const auto value = [&](std::string_view keyword) {
        const auto found = values.find(keyword);
        return found == values.end() ? std::string_view() : found->second;
    };
    static constexpr std::array<std::string_view, 2> k_yes = {"yes", "true"};
    static constexpr std::array<std::string_view, 3> k_silent = {"SILENT", "QUIET", "FATAL"};
    static constexpr std::array<std::string_view, 4> k_takes_any = {"no", "off", "false",
                                                                    "accept-new"};
    SshFacts facts;
    facts.has_session_options = !value("sessiontype").empty();
    for (const std::string_view keyword : {"stdinnull", "forkafterauthentication"}) {
        if (is_one_of(value(keyword), k_yes)) {
            facts.without_streams = std::string(keyword) + " yes";
        }
    }
    if (facts.has_session_options && value("sessiontype") != "default") {
        facts.without_streams = "sessiontype " + std::string(value("sessiontype"));
    }
    facts.quiet = is_one_of(value("loglevel"), k_silent);
    facts.batch = is_one_of(value("batchmode"), k_yes);
    facts.strict = is_one_of(value("stricthostkeychecking"), k_yes);
    facts.keeps_no_keys = is_one_of(value("stricthostkeychecking"), k_takes_any) &&
                          keeps_nothing(value("userknownhostsfile"));
    facts.asks_about_keys = value("updatehostkeys") == "ask";
    facts.control_path = value("controlpath") == "none" ? "" : value("controlpath");
    facts.proxy_jump = value("proxyjump") == "none" ? "" : value("proxyjump");
    return facts;
}

} // namespace gpuq::remote
