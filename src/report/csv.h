// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq::report {

/// A field of RFC 4180: in quotes if necessary.
inline std::string csv_field(const std::string& text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
}

/// The same for a name that others have chosen: an apostrophe keeps a spreadsheet from evaluating
/// it as a formula.
inline std::string csv_name(const std::string& name)
{
    const bool is_formula =
        !name.empty() && std::string("=+-@\t\r").find(name[0]) != std::string::npos;
    return csv_field(is_formula ? "'" + name : name);
}

} // namespace gpuq::report
