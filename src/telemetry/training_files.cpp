// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/training_files.h"

#include "core/number.h"
#include "core/python_json.h"
#include "telemetry/line.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::telemetry {
namespace {

using nlohmann::json;

/// The cells of a row, limited to a number that no real table exceeds.
std::vector<std::string> cells_of(std::string_view row)
{
    constexpr std::size_t k_most_cells = 4096;
    std::vector<std::string> cells(1);
    bool is_quoted = false;
    for (const char c : row) {
        if (cells.size() > k_most_cells) {
            break;
        }
        if (c == '"') {
            is_quoted = !is_quoted;
        } else if (c == ',' && !is_quoted) {
            cells.emplace_back();
        } else if (c != '\r') {
            cells.back() += c;
        }
    }
    return cells;
}

/// Removes the first line from `text`; nothing if it has no end.
std::optional<std::string_view> take_line(std::string_view& text)
{
    const auto end = text.find('\n');
    if (end == text.npos) {
        return std::nullopt;
    }
    const auto line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

/// Parses log_history without building a document: each of its objects is one step.
class Reader : public nlohmann::json_sax<json> {
public:
    TrainerState state;

    bool null() override { return number(std::numeric_limits<double>::quiet_NaN()); }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t value) override
    {
        return number(static_cast<double>(value));
    }
    bool number_unsigned(number_unsigned_t value) override
    {
        if (m_depth == 1 && m_key == "global_step") {
            state.global_step = value;
        } else if (m_depth == 1 && m_key == "max_steps") {
            state.max_steps = value;
        }
        return number(static_cast<double>(value));
    }
    bool number_float(number_float_t value, const string_t&) override { return number(value); }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override
    {
        ++m_depth;
        if (m_depth == 3) {
            m_entry.clear();
        }
        return m_depth <= k_deepest;
    }
    bool end_object() override
    {
        if (is_entry()) {
            add_entry();
        }
        --m_depth;
        return true;
    }
    bool start_array(std::size_t) override
    {
        ++m_depth;
        m_in_history = m_depth == 2 && m_key == "log_history";
        return m_depth <= k_deepest;
    }
    bool end_array() override
    {
        m_in_history = m_in_history && m_depth > 2;
        --m_depth;
        return true;
    }
    bool key(string_t& name) override
    {
        m_key = name;
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override
    {
        return false;
    }

private:
    static constexpr int k_deepest = 64;

    bool is_entry() const { return m_in_history && m_depth == 3; }

    bool number(double value)
    {
        if (is_entry()) {
            m_entry.emplace_back(m_key, value);
        }
        return true;
    }

    void add_entry()
    {
        const auto step =
            std::ranges::find(m_entry, "step", &std::pair<std::string, double>::first);
        if (step == m_entry.end() || !(step->second >= 0 && step->second < 1e15)) {
            return;
        }
        for (const auto& [name, value] : m_entry) {
            if (name != "step" && name != "epoch") {
                state.curves.add(name,
                                 {static_cast<std::int64_t>(step->second), std::nullopt, value});
            }
        }
    }

    int m_depth = 0;
    bool m_in_history = false;
    std::string m_key;
    std::vector<std::pair<std::string, double>> m_entry;
};

} // namespace

bool read_metrics_csv(std::string_view text, Curves& curves)
{
    const auto header = take_line(text);
    const auto names = cells_of(header.value_or(""));
    const auto step = std::ranges::find(names, "step");
    if (!header || step == names.end()) {
        return false;
    }
    const auto column = static_cast<std::size_t>(step - names.begin());
    while (const auto row = take_line(text)) {
        const auto cells = cells_of(*row);
        const auto at = cells.size() == names.size() ? whole_number(cells[column]) : std::nullopt;
        constexpr std::uint64_t k_most = 1'000'000'000'000'000;
        if (!at || *at > k_most) {
            continue;
        }
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const auto value =
                i == column || names[i] == "epoch" ? std::nullopt : number_in(cells[i]);
            if (value) {
                curves.add(names[i], {static_cast<std::int64_t>(*at), std::nullopt, *value});
            }
        }
    }
    return true;
}

std::optional<TrainerState> read_trainer_state(std::string_view text)
{
    Reader reader;
    const std::string plain = json_of_python(text);
    if (!plain.starts_with('{') || !json::sax_parse(plain.begin(), plain.end(), &reader)) {
        return std::nullopt;
    }
    return std::move(reader.state);
}

} // namespace gpuq::telemetry
