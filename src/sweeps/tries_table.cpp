// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/tries_table.h"

#include "core/strings.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace gpuq::sweeps {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view k_byte_order_mark = "\xef\xbb\xbf"; ///< written by spreadsheets

Error wrong(const std::string& file, std::size_t line, const std::string& reason)
{
    return fail(Error::Kind::usage, fmt::format("{}:{}: {}", file, line, reason));
}

Result<void> check_names(const std::vector<std::string>& names, const std::string& file)
{
    std::set<std::string> seen;
    for (const std::string& name : names) {
        if (const auto valid = check_parameter_name(name); !valid) {
            return wrong(file, 1, valid.error().text);
        }
        if (!seen.insert(name).second) {
            return wrong(file, 1, fmt::format("'{}' is there twice", name));
        }
    }
    return {};
}

Result<void> check_value(const std::string& value, const std::string& file, std::size_t line)
{
    if (value.find('\0') != std::string::npos) {
        return wrong(file, line, "a value has a zero byte in it");
    }
    if (value.size() > k_longest_value) {
        return wrong(file, line, fmt::format("a value is longer than {} bytes", k_longest_value));
    }
    return {};
}

/// A record of a CSV text, with the line in which it begins.
struct Record {
    std::vector<std::string> fields;
    std::size_t line = 1;
};

/// Splits a CSV text into its records, without empty lines.
class CsvReader {
public:
    CsvReader(std::string_view text, const std::string& file)
        : m_text(text)
        , m_file(file)
    {
    }

    /// Nothing at the end.
    Result<std::optional<Record>> next()
    {
        while (!m_text.empty()) {
            Record record{{}, m_line};
            m_is_quoted = false;
            bool is_last = false;
            while (!is_last) {
                TRY_ASSIGN(std::string field, next_field());
                record.fields.push_back(std::move(field));
                is_last = m_text.empty() || m_text.front() != ',';
                m_text.remove_prefix(m_text.empty() ? 0 : 1);
            }
            ++m_line;
            if (record.fields.size() > 1 || m_is_quoted || !record.fields.front().empty()) {
                return std::optional(std::move(record));
            }
        }
        return std::optional<Record>();
    }

private:
    /// Leaves `,` or the line end before the rest.
    Result<std::string> next_field()
    {
        if (!m_text.starts_with('"')) {
            const auto end = std::min(m_text.find_first_of(",\n"), m_text.size());
            std::string field(trimmed(m_text.substr(0, end)));
            m_text.remove_prefix(end);
            return field;
        }
        const std::size_t begin = m_line;
        m_is_quoted = true;
        std::string field;
        for (m_text.remove_prefix(1); !m_text.empty(); m_text.remove_prefix(1)) {
            if (m_text.starts_with("\"\"")) {
                m_text.remove_prefix(1);
            } else if (m_text.front() == '"') {
                m_text.remove_prefix(m_text.starts_with("\"\r") ? 2 : 1);
                if (!m_text.empty() && m_text.front() != ',' && m_text.front() != '\n') {
                    return wrong(m_file, m_line, "text after a closing quote");
                }
                return field;
            }
            m_line += m_text.front() == '\n' ? 1 : 0;
            field += m_text.front();
        }
        return wrong(m_file, begin, "a quote is not closed");
    }

    std::string_view m_text;
    const std::string& m_file;
    std::size_t m_line = 1;
    bool m_is_quoted = false; ///< a value of this record
};

Result<TriesTable> parse_csv(std::string_view text, const std::string& file)
{
    CsvReader reader(text, file);
    TRY_ASSIGN(auto header, reader.next());
    if (!header) {
        return wrong(file, 1, "no tries: the first line must have the names of the parameters");
    }
    TRY(check_names(header->fields, file));
    TriesTable table{std::move(header->fields), {}};
    while (true) {
        TRY_ASSIGN(auto record, reader.next());
        if (!record) {
            return table;
        }
        if (record->fields.size() != table.names.size()) {
            return wrong(
                file, record->line,
                fmt::format("{} values, but {} names", record->fields.size(), table.names.size()));
        }
        for (const std::string& value : record->fields) {
            TRY(check_value(value, file, record->line));
        }
        table.tries.push_back(std::move(record->fields));
    }
}

/// A JSON object whose values are texts, numbers as they are spelled, or truth values; those of any
/// other kind are unset.
class FlatObject : public ordered_json::json_sax_t {
public:
    using Member = std::pair<std::string, std::optional<std::string>>;

    /// Nothing if the text is no JSON object.
    static std::optional<std::vector<Member>> parse(std::string_view text)
    {
        FlatObject object;
        const bool is_valid = ordered_json::sax_parse(text.begin(), text.end(), &object);
        return is_valid && object.m_is_object ? std::optional(std::move(object.m_members))
                                              : std::nullopt;
    }

    bool null() override { return take(std::nullopt); }
    bool boolean(bool value) override { return take(value ? "true" : "false"); }
    bool number_integer(number_integer_t value) override { return take(std::to_string(value)); }
    bool number_unsigned(number_unsigned_t value) override { return take(std::to_string(value)); }
    bool number_float(number_float_t /*value*/, const string_t& text) override
    {
        return take(text);
    }
    bool string(string_t& value) override { return take(std::move(value)); }
    bool binary(binary_t& /*value*/) override { return take(std::nullopt); }
    bool start_object(std::size_t /*size*/) override
    {
        m_is_object = m_is_object || m_depth == 0;
        return enter();
    }
    bool start_array(std::size_t /*size*/) override { return m_depth > 0 && enter(); }
    bool key(string_t& name) override
    {
        m_key = m_depth == 1 ? std::move(name) : m_key;
        return true;
    }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }
    bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                     const nlohmann::detail::exception& /*error*/) override
    {
        return false;
    }

private:
    bool take(std::optional<std::string> value)
    {
        if (m_depth == 1) {
            m_members.emplace_back(m_key, std::move(value));
        }
        return true;
    }
    bool enter()
    {
        take(std::nullopt); // of the object around it
        ++m_depth;
        return true;
    }
    bool leave()
    {
        --m_depth;
        return true;
    }

    std::vector<Member> m_members;
    std::string m_key;
    std::size_t m_depth = 0;
    bool m_is_object = false;
};

Result<Values> values_in(const std::vector<FlatObject::Member>& object, TriesTable& table,
                         const std::string& file, std::size_t line)
{
    Values values;
    for (const std::string& name : table.names) {
        const auto found = std::find_if(object.begin(), object.end(),
                                        [&](const auto& member) { return member.first == name; });
        if (found == object.end()) {
            return wrong(file, line, fmt::format("'{}' is missing", name));
        }
        if (!found->second) {
            return wrong(
                file, line,
                fmt::format("'{}' is neither a text nor a number nor a truth value", name));
        }
        values.push_back(*found->second);
        TRY(check_value(values.back(), file, line));
    }
    if (object.size() != table.names.size()) {
        return wrong(file, line, "other names than in the first line");
    }
    return values;
}

Result<TriesTable> parse_json_lines(std::string_view text, const std::string& file)
{
    TriesTable table;
    std::size_t number = 0;
    for (const std::string_view line : split(text, "\n")) {
        ++number;
        if (trimmed(line).empty()) {
            continue;
        }
        const auto object = FlatObject::parse(line);
        if (!object) {
            return wrong(file, number, "not a JSON object");
        }
        if (table.names.empty()) {
            for (const auto& [name, value] : *object) {
                table.names.push_back(name);
            }
            TRY(check_names(table.names, file));
        }
        if (table.names.empty()) {
            return wrong(file, number, "no parameters in it");
        }
        TRY_ASSIGN(Values values, values_in(*object, table, file, number));
        table.tries.push_back(std::move(values));
    }
    return table;
}

} // namespace

Result<TriesTable> parse_tries(std::string_view text, const std::string& file)
{
    if (text.starts_with(k_byte_order_mark)) {
        text.remove_prefix(k_byte_order_mark.size());
    }
    if (trimmed(text).starts_with('[')) {
        return wrong(file, 1, "a JSON array; write each try in a line of its own, as an object");
    }
    TRY_ASSIGN(TriesTable table, trimmed(text).starts_with('{') ? parse_json_lines(text, file)
                                                                : parse_csv(text, file));
    if (table.tries.empty()) {
        return fail(Error::Kind::usage, fmt::format("{}: no tries in it", file));
    }
    if (table.tries.size() > k_most_tries) {
        return fail(Error::Kind::usage, fmt::format("{}: more than {} tries", file, k_most_tries));
    }
    return table;
}

} // namespace gpuq::sweeps
