// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/finding.h"
#include "policy/policy.h"
#include "yaml/document.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Gives the texts of a YAML document types. What is wrong is noted and a default taken in its
/// place, so that one look at a file finds all that is wrong with it.
namespace gpuq::policy {

class Reader {
public:
    enum class Need { no, yes };
    struct Field {
        std::string_view name;
        std::function<void(const yaml::Node&)> read;
        Need need = Need::no;
    };

    /// Hands every value of a map to its field; notes names that are not among them, and needed
    /// ones that are missing. `what` names the map in messages.
    void map(const yaml::Node& node, std::string_view what, std::initializer_list<Field> fields);

    /// Hands every entry of a map of named things to `read`: (name, its place, value).
    void names(
        const yaml::Node& node, std::string_view what,
        const std::function<void(const std::string&, const yaml::Node&, const yaml::Node&)>& read);

    Rule<int> number(const yaml::Node& node, int least, int most);
    Rule<double> weight(const yaml::Node& node);
    Rule<seconds> duration(const yaml::Node& node);
    Rule<minutes> walltime(const yaml::Node& node);
    Rule<std::uint64_t> memory(const yaml::Node& node);
    Rule<std::string> text(const yaml::Node& node);
    /// A name as Slurm, a shell and lua can take it.
    Rule<std::string> name(const yaml::Node& node);
    /// One name, or a list of them; each once.
    Rule<std::vector<std::string>> some_names(const yaml::Node& node);
    /// The same for users and accounts, whose names may have points and begin with a digit.
    Rule<std::vector<std::string>> people(const yaml::Node& node);
    /// A list of texts, or one.
    Rule<std::vector<std::string>> some_texts(const yaml::Node& node);

    void note(const yaml::Node& node, std::string code, std::string text,
              Finding::Weight weight = Finding::Weight::error);
    std::vector<Finding> take() { return std::move(m_findings); }

private:
    using IsName = bool (*)(std::string_view);
    Rule<std::string> one(const yaml::Node& node, IsName is_name);
    Rule<std::vector<std::string>> some(const yaml::Node& node, IsName is_name);

    std::vector<Finding> m_findings;
};

} // namespace gpuq::policy
