// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/fields.h"

#include <fmt/format.h>

#include <charconv>

namespace gpuq::supervisor {

std::string packed_fields(const std::vector<std::string>& fields)
{
    std::string packed;
    for (const std::string& field : fields) {
        packed += fmt::format("{}:{}", field.size(), field);
    }
    return packed;
}

std::vector<std::string> fields_in(std::string_view packed)
{
    std::vector<std::string> fields;
    while (true) {
        std::size_t size = 0;
        const auto [end, error] = std::from_chars(packed.begin(), packed.end(), size);
        const auto header = static_cast<std::size_t>(end - packed.begin()) + 1;
        if (error != std::errc{} || end == packed.end() || *end != ':' ||
            size > packed.size() - header) {
            return fields;
        }
        fields.emplace_back(packed.substr(header, size));
        packed.remove_prefix(header + size);
    }
}

} // namespace gpuq::supervisor
