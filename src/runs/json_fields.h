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

/// Reading the small JSON documents of this room's records field by field: what is not there, or of
/// another type, is nothing.
namespace gpuq {

std::optional<std::string> text_in(const nlohmann::json& object, const char* name);
/// In ISO 8601.
std::optional<Time> time_in(const nlohmann::json& object, const char* name);
/// False unless it is there and true.
bool flag_in(const nlohmann::json& object, const char* name);

/// Nothing for what `Number` can't hold.
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

/// A document of document_of; `usage`, which names `file`, for any other.
Result<nlohmann::json> document_in(std::string_view text, const char* file);

/// The fields as document_in reads them: a line for each, what is not UTF-8 replaced.
std::string document_of(nlohmann::json fields);

} // namespace gpuq
