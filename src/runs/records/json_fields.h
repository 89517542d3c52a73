// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Reads the small JSON documents of this module's records field by field: a field that is missing
/// or has another type gives nothing.
namespace gpuq {

std::optional<std::string> text_in(const nlohmann::json& object, const char* name);
/// In ISO 8601.
std::optional<Time> time_in(const nlohmann::json& object, const char* name);
/// True only if the field exists and is true.
bool flag_in(const nlohmann::json& object, const char* name);

/// Nothing for a value that `Number` can't hold.
template <typename Number>
std::optional<Number> number_in(const nlohmann::json& object, const char* name)
{
    const auto field = object.find(name);
    if (field == object.end() || !field->is_number_integer()) {
        return std::nullopt;
    }
    if (field->is_number_unsigned()) {
        const auto value = field->get<std::uint64_t>();
        return std::in_range<Number>(value) ? std::optional(static_cast<Number>(value))
                                            : std::nullopt;
    }
    const auto value = field->get<std::int64_t>();
    return std::in_range<Number>(value) ? std::optional(static_cast<Number>(value)) : std::nullopt;
}

/// Parses a document of document_of; otherwise `usage`, naming `file`.
Result<nlohmann::json> document_in(std::string_view text, const char* file);

/// The fields as a document for document_in: one line each; bytes that are not UTF-8 are replaced.
std::string document_of(nlohmann::json fields);

} // namespace gpuq
