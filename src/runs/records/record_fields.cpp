// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/record_fields.h"

#include "core/timestamp.h"

#include <fmt/format.h>

namespace gpuq::records {
namespace {

using nlohmann::json;

std::optional<std::string> from_hex(const std::string& hex)
{
    constexpr std::string_view k_digits = "0123456789abcdef";
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        const auto high = k_digits.find(hex[i]);
        const auto low = i + 1 < hex.size() ? k_digits.find(hex[i + 1]) : std::string_view::npos;
        if (high == std::string_view::npos || low == std::string_view::npos) {
            return std::nullopt;
        }
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

std::optional<std::string> to_bytes(const json& value)
{
    if (value.is_string()) {
        return value.get<std::string>();
    }
    const auto hex = value.is_object() ? value.find("hex") : value.end();
    if (value.is_object() && hex != value.end() && hex->is_string()) {
        return from_hex(hex->get<std::string>());
    }
    return std::nullopt;
}

} // namespace

json from_bytes(const std::string& bytes)
{
    json text = bytes;
    try {
        text.dump();
    } catch (const json::exception&) {
        std::string hex;
        for (const char c : bytes) {
            hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
        }
        return json{{"hex", hex}};
    }
    return text;
}

json list_of(const std::vector<std::string>& texts)
{
    json list = json::array();
    for (const std::string& text : texts) {
        list.push_back(from_bytes(text));
    }
    return list;
}

json or_null(const std::optional<std::string>& value)
{
    return value ? from_bytes(*value) : json(nullptr);
}

std::string text_of(const json& document)
{
    return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Fields::Fields(const json& object, std::string where)
    : m_object(object)
    , m_where(std::move(where))
{
    if (!object.is_object()) {
        wrong("the document");
    }
}

std::optional<std::string> Fields::maybe_text(const char* name)
{
    const json* field = find(name);
    return field ? kind(to_bytes(*field), name) : std::nullopt;
}

bool Fields::maybe_flag(const char* name)
{
    const json* field = find(name);
    return field &&
           must(kind(field->is_boolean() ? std::optional(field->get<bool>()) : std::nullopt, name),
                name);
}

Time Fields::time(const char* name)
{
    const std::string spelled = text(name);
    return must(kind(time_from_iso8601(spelled), name), name);
}

std::vector<std::string> Fields::texts(const char* name)
{
    std::vector<std::string> list;
    for (const json& each : array(name)) {
        list.push_back(must(kind(to_bytes(each), name), name));
    }
    return list;
}

std::vector<std::pair<std::string, std::string>> Fields::pairs(const char* name)
{
    std::vector<std::pair<std::string, std::string>> list;
    for (const json& each : array(name)) {
        if (!each.is_array() || each.size() != 2) {
            wrong(name);
            break;
        }
        list.emplace_back(must(kind(to_bytes(each[0]), name), name),
                          must(kind(to_bytes(each[1]), name), name));
    }
    return list;
}

const json& Fields::object(const char* name)
{
    static const json k_nothing;
    const json* field = find(name);
    return field ? *field : k_nothing;
}

void Fields::wrong(const char* name)
{
    if (m_problem.empty()) {
        m_problem = fmt::format("{}: '{}' is missing or has the wrong type", m_where, name);
    }
}

Result<void> Fields::check() const
{
    return m_problem.empty() ? Result<void>() : fail(Error::Kind::usage, m_problem);
}

const json* Fields::find(const char* name)
{
    if (!m_object.is_object()) {
        return nullptr;
    }
    const auto at = m_object.find(name);
    return at == m_object.end() || at->is_null() ? nullptr : &*at;
}

const json& Fields::array(const char* name)
{
    static const json k_empty = json::array();
    const json* field = find(name);
    if (field && !field->is_array()) {
        wrong(name);
    }
    return field && field->is_array() ? *field : k_empty;
}

Result<json> parse(std::string_view text, const char* where)
{
    json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (document.is_discarded()) {
        return fail(Error::Kind::usage, fmt::format("{}: not a JSON document", where));
    }
    Fields fields(document, where);
    const int schema = fields.number<int>("schema");
    TRY(fields.check());
    if (schema != k_schema) {
        return fail(Error::Kind::usage, fmt::format("{}: schema {}, this gpuq {} reads schema {}",
                                                    where, schema, GPUQ_VERSION, k_schema));
    }
    return document;
}

} // namespace gpuq::records
