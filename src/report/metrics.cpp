// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/metrics.h"

#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace gpuq::report {

std::string metric_label(std::string_view name, std::string_view value)
{
    std::string text = std::string(name) + "=\"";
    for (const char c : sanitised(value)) {
        if (c == '\\' || c == '"') {
            text += '\\';
        }
        text += c;
    }
    return text + "\"";
}

Metric::Metric(std::string& text, std::string name, std::string_view help)
    : m_text(text)
    , m_name(std::move(name))
{
    m_text += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", m_name, help, m_name);
}

void Metric::add(const std::vector<std::string>& labels, std::int64_t value)
{
    m_text += m_name;
    if (!labels.empty()) {
        m_text += fmt::format("{{{}}}", fmt::join(labels, ","));
    }
    m_text += fmt::format(" {}\n", value);
}

} // namespace gpuq::report
