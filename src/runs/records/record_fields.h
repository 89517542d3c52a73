// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "runs/records/json_fields.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Writes and reads the fields of the JSON documents of record.h. Text is bytes, and an error names
/// the field, unlike in json_fields.h.
namespace gpuq::records {

constexpr int k_schema = 1;

/// File names, arguments and environment values are bytes, but JSON holds only UTF-8: text that is
/// not UTF-8 becomes the object `{"hex": "66ff"}`.
nlohmann::json from_bytes(const std::string& bytes);
nlohmann::json list_of(const std::vector<std::string>& texts);
/// `null` for an unset value.
nlohmann::json or_null(const std::optional<std::string>& value);
template <typename Number>
nlohmann::json or_null(const std::optional<Number>& value)
{
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
std::string text_of(const nlohmann::json& document);

/// Parses a document of this schema; otherwise `usage`. `where`: its file, for messages.
Result<nlohmann::json> parse(std::string_view text, const char* where);

/// Reads the fields of an object. A field of the wrong type gives an empty value and is remembered
/// for check(), as is an absent one unless it is read as `maybe`.
class Fields {
public:
    /// `object` must outlive this object. `where`: its file, for messages.
    Fields(const nlohmann::json& object, std::string where);

    std::string text(const char* name) { return must(maybe_text(name), name); }
    std::optional<std::string> maybe_text(const char* name);

    template <typename Number>
    Number number(const char* name)
    {
        return must(maybe_number<Number>(name), name);
    }
    template <typename Number>
    std::optional<Number> maybe_number(const char* name)
    {
        return find(name) ? kind(number_in<Number>(m_object, name), name) : std::nullopt;
    }

    bool maybe_flag(const char* name);

    Time time(const char* name);

    std::vector<std::string> texts(const char* name);

    std::vector<std::pair<std::string, std::string>> pairs(const char* name);

    const nlohmann::json& object(const char* name);

    void wrong(const char* name);

    Result<void> check() const;

private:
    const nlohmann::json* find(const char* name);
    const nlohmann::json& array(const char* name);
    template <typename T>
    std::optional<T> kind(std::optional<T> value, const char* name)
    {
        if (!value) {
            wrong(name);
        }
        return value;
    }
    template <typename T>
    T must(std::optional<T> value, const char* name)
    {
        if (!value) {
            wrong(name);
        }
        return value ? *std::move(value) : T{};
    }

    const nlohmann::json& m_object;
    std::string m_where;
    std::string m_problem;
};

} // namespace gpuq::records
