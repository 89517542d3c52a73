// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/step_messages.h"

#include "term/sanitise.h"

#include <fmt/format.h>

namespace gpuq::cli {

std::string srun_message(std::string_view printed)
{
    constexpr std::string_view k_name = "srun: ";
    std::string_view first = printed.substr(0, printed.find('\n'));
    if (first.starts_with(k_name)) {
        first.remove_prefix(k_name.size());
    }
    return first.empty() ? "srun could not start the supervisor" : fmt::format("srun: {}", first);
}

std::string last_line(std::string_view printed)
{
    constexpr std::string_view k_name = "gpuq: ";
    while (printed.ends_with('\n') || printed.ends_with('\r')) {
        printed.remove_suffix(1);
    }
    printed.remove_prefix(printed.rfind('\n') + 1);
    if (printed.starts_with(k_name)) {
        printed.remove_prefix(k_name.size());
    }
    return sanitised(printed);
}

} // namespace gpuq::cli
