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

/// Converts the texts of a YAML document to typed values. An error is recorded and the value
/// replaced by a default, so that one pass finds all errors in a file.
namespace gpuq::policy {

/// A name of a user or account: letters, digits, - _ and dots.
bool is_user_name(std::string_view text);

class Reader {
public:
    enum class Need { no, yes };
    enum class Empty { refused, accepted };
    struct Field {
        std::string_view name;
        std::function<void(const yaml::Node&)> read;
        Need need = Need::no;
    };

    /// Passes every value of a map to its field; records unknown names, and required ones that are
    /// missing. `what` names the map in messages.
    void map(const yaml::Node& node, std::string_view what, std::initializer_list<Field> fields);

    /// Passes every entry of a map of named items to `read`: (name, its position, value).
    void names(
        const yaml::Node& node, std::string_view what,
        const std::function<void(const std::string&, const yaml::Node&, const yaml::Node&)>& read);

    static constexpr int k_many = 1'000'000;
    Rule<int> number(const yaml::Node& node, int least, int most = k_many);
    Rule<double> weight(const yaml::Node& node);
    Rule<seconds> duration(const yaml::Node& node);
    Rule<minutes> walltime(const yaml::Node& node);
    Rule<std::uint64_t> memory(const yaml::Node& node);
    /// GPUs of a node or job: `k80:4`, `4`, `k80:2,p100:2`.
    Rule<std::vector<GpuCount>> gpus(const yaml::Node& node);
    Rule<std::string> text(const yaml::Node& node);
    /// One of the words in `choices`.
    Rule<std::string> word(const yaml::Node& node, const std::vector<std::string>& choices);
    /// A name that is valid in Slurm, in a shell and in Lua.
    Rule<std::string> name(const yaml::Node& node);
    /// One name or a list of names, without duplicates. A rule for an empty list would be one for
    /// nothing, or one for everything.
    Rule<std::vector<std::string>> some_names(const yaml::Node& node, Empty empty = Empty::refused);
    /// The same for users and accounts, whose names may contain dots and begin with a digit.
    Rule<std::vector<std::string>> user_names(const yaml::Node& node);
    /// One text or a list of texts.
    Rule<std::vector<std::string>> some_texts(const yaml::Node& node);

    void note(const yaml::Node& node, std::string code, std::string text,
              Finding::Weight weight = Finding::Weight::error);
    std::vector<Finding> take() { return std::move(m_findings); }

private:
    using IsName = bool (*)(std::string_view);
    Rule<std::string> one(const yaml::Node& node, IsName is_name);
    Rule<std::vector<std::string>> some(const yaml::Node& node, IsName is_name, Empty empty);

    std::vector<Finding> m_findings;
};

} // namespace gpuq::policy
