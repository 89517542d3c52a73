// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/json_fields.h"

#include "core/timestamp.h"

#include <fmt/format.h>

namespace gpuq {

using nlohmann::json;

constexpr int k_schema = 1;

std::optional<std::string> text_in(const json& object, const char* name)
{
    const auto field = object.find(name);
    return field != object.end() && field->is_string() ? std::optional(field->get<std::string>())
                                                       : std::nullopt;
}

std::optional<Time> time_in(const json& object, const char* name)
{
    return time_from_iso8601(text_in(object, name).value_or(""));
}

bool flag_in(const json& object, const char* name)
{
    const auto field = object.find(name);
    return field != object.end() && field->is_boolean() && field->get<bool>();
}

Result<json> document_in(std::string_view text, const char* file)
{
    json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!document.is_object() || document.value("schema", json()) != k_schema) {
        return fail(Error::Kind::usage,
                    fmt::format("{} is not a record that this version can read", file));
    }
    return document;
}

std::string document_of(json fields)
{
    fields["schema"] = k_schema;
    return fields.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace gpuq
