// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/finding.h"
#include "policy/policy.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq::policy {

/// A position in the file; for a whole section, only its line.
struct Place {
    Place(int of_part)
        : line(of_part)
    {
    }
    template <typename T>
    Place(const Rule<T>& rule)
        : line(rule.line)
        , column(rule.column)
    {
    }
    int line = 0, column = 0;
};

/// Collects the findings of check().
class FindingList {
public:
    void error(Place place, std::string code, std::string text)
    {
        add(Finding::Weight::error, place, std::move(code), std::move(text));
    }
    void warn(Place place, std::string code, std::string text)
    {
        add(Finding::Weight::warning, place, std::move(code), std::move(text));
    }
    /// An error unless `name` is one of `known`.
    void expect_known(const std::string& name, const std::vector<std::string>& known,
                      std::string_view what, Place place);
    std::vector<Finding> take() { return std::move(m_findings); }

private:
    void add(Finding::Weight weight, Place place, std::string code, std::string text)
    {
        m_findings.push_back({weight, place.line, place.column, std::move(code), std::move(text)});
    }

    std::vector<Finding> m_findings;
};

} // namespace gpuq::policy
