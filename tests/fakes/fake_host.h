// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/host.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace gpuq::fakes {

/// A machine with directories and programs set by the test. Tasks of apart() run at once in this
/// process, except those that the test lets hang or die.
class FakeHost : public Host {
public:
    std::map<std::string, DirectoryFacts> directories;
    std::map<std::string, std::string> programs;
    std::set<std::size_t> late;               ///< indices of tasks that hang
    std::map<std::size_t, std::string> dying; ///< tasks that die, with their last message
    std::set<std::size_t> truncated;          ///< tasks whose answer lacks its last byte

    Result<DirectoryFacts> directory(const std::string& path) override
    {
        const auto found = directories.find(path);
        if (found == directories.end()) {
            return fail(Error::Kind::io, path + ": Permission denied");
        }
        return found->second;
    }

    std::set<std::string> held_by_others;
    bool hold(const std::string& name) override { return !held_by_others.contains(name); }

    std::map<std::string, Descriptor> listening; ///< each accepts one connection
    Result<Descriptor> connect_to(const std::vector<std::string>& names) override
    {
        for (const std::string& name : names) {
            if (const auto found = listening.find(name);
                found != listening.end() && found->second) {
                return std::move(found->second);
            }
        }
        return fail(Error::Kind::missing, names.front() + ": Connection refused");
    }

    std::optional<std::string> program(const std::string& name) override
    {
        const auto found = programs.find(name);
        return found == programs.end() ? std::nullopt : std::optional(found->second);
    }

    std::vector<std::vector<std::string>> executed;
    Ended ended;
    using Host::run;
    Result<void> leave_running(const std::vector<std::string>& arguments) override
    {
        left.push_back(arguments);
        return {};
    }
    std::vector<std::vector<std::string>> left;
    Result<void> leave_running(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& variables,
                               std::chrono::seconds limit) override
    {
        unattended.push_back({arguments, variables, limit});
        return {};
    }
    struct Unattended {
        std::vector<std::string> arguments, variables;
        std::chrono::seconds limit;
    };
    std::vector<Unattended> unattended;
    Result<Ended> run(const std::vector<std::string>& arguments, Heard) override
    {
        executed.push_back(arguments);
        return ended;
    }
    Result<int> run_here(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& pager) override
    {
        executed.push_back(arguments);
        if (!pager.empty()) {
            executed.push_back(pager);
        }
        return ended.status;
    }

    std::vector<Answer> apart(const std::vector<std::function<std::string()>>& work,
                              std::chrono::milliseconds) override
    {
        std::vector<Answer> answers;
        for (std::size_t i = 0; i < work.size(); ++i) {
            if (late.contains(i)) {
                answers.push_back({Answer::Kind::late, ""});
            } else if (dying.contains(i)) {
                answers.push_back({Answer::Kind::died, dying.at(i)});
            } else {
                const std::string text = work[i]();
                answers.push_back(
                    {Answer::Kind::done, text.substr(0, text.size() - truncated.count(i))});
            }
        }
        return answers;
    }
};

} // namespace gpuq::fakes
