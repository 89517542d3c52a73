// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/json_text.h"

#include <nlohmann/json.hpp>

namespace gpuq::report {

std::optional<std::string> text_member(std::string_view document, std::string_view name)
{
    const auto parsed = nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) {
        return std::nullopt;
    }
    const auto found = parsed.find(std::string(name));
    return found != parsed.end() && found->is_string() ? std::optional(found->get<std::string>())
                                                       : std::nullopt;
}

} // namespace gpuq::report
