// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Prometheus' text format, version 0.0.4.
namespace gpuq::report {

/// A label and its value, sanitised, with backslashes and quotes escaped: `queue="short"`.
std::string metric_label(std::string_view name, std::string_view value);

/// One gauge: appends its header, and a line for each sample. A value that is unknown has no
/// sample.
class Metric {
public:
    Metric(std::string& text, std::string name, std::string_view help);
    void add(const std::vector<std::string>& labels, std::int64_t value);

private:
    std::string& m_text;
    std::string m_name;
};

} // namespace gpuq::report
