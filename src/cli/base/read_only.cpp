// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/read_only.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

/// A verb, and the first operand or the option with which it only reads; empty: always.
struct Reading {
    std::string_view verb;
    std::string_view operand = {};
    std::string_view option = {};
};

constexpr std::array k_reading = {
    Reading{"ls"},
    Reading{"show"},
    Reading{"diff"},
    Reading{"logs"},
    Reading{"free"},
    Reading{"why"},
    Reading{"profile"},
    Reading{"usage"},
    Reading{"wait"},
    Reading{"doctor"},
    Reading{"help"},
    Reading{"completion"},
    Reading{"serve"}, // each command that it executes is checked
    Reading{"top", "", "once"},
    Reading{"run", "", "dry-run"},
    Reading{"again", "", "dry-run"},
    Reading{"shell", "", "dry-run"},
    Reading{"sweep", "", "dry-run"},
    Reading{"sweep", "export"},
    Reading{"clean", "", "dry-run"},
    Reading{"policy", "check"},
    Reading{"policy", "explain"},
    Reading{"policy", "test"},
    Reading{"policy", "plan"},
    Reading{"policy", "drift"},
    Reading{"policy", "import"},
    Reading{"policy", "simulate"},
    Reading{"cluster", "status"},
    Reading{"cluster", "env"},
};

bool covers(const Reading& reading, const Verb& verb, const Parsed& parsed)
{
    const std::string first = parsed.operands.empty() ? "" : parsed.operands.front();
    // With --over, `export` is the program of a new sweep.
    const bool is_sweep = parsed.options.has("over") || parsed.options.has("from");
    return reading.verb == verb.name && (reading.operand != "export" || !is_sweep) &&
           (reading.operand.empty() || reading.operand == first) &&
           (reading.option.empty() || parsed.options.has(reading.option));
}

} // namespace

bool is_read_only(Services& services)
{
    const std::string value = services.variable("GPUQ_READONLY").value_or("");
    return !value.empty() && value != "0";
}

Result<void> check_read_only(const Verb& verb, const std::vector<std::string>& arguments)
{
    const auto parsed = parse_options(all_options(verb), verb.order, arguments);
    if (!parsed || parsed->options.has("help") ||
        std::any_of(k_reading.begin(), k_reading.end(),
                    [&](const Reading& reading) { return covers(reading, verb, *parsed); })) {
        return {};
    }
    return fail(Error::Kind::denied,
                fmt::format("GPUQ_READONLY is set: gpuq {} could change something; allowed are ls, "
                            "show, logs, wait, top --once, run --dry-run and others that only read",
                            verb.name));
}

} // namespace gpuq::cli
