// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// A row of a verb's table of options, used by parsing, help, completion and the check of the man
/// page.
struct Option {
    char letter = 0;        ///< `t` for -t; 0: none
    std::string_view name;  ///< `time` for --time
    std::string_view value; ///< placeholder of its value in help: `TIME`; empty: a switch
    std::string_view help;  ///< one line
    enum class State {
        built,
        reserved, ///< documented, not in this version: rejected and not in help
        hidden,   ///< used by gpuq itself: accepted, but not in help
    } state = State::built;
};

/// The options given on a command line.
class Options {
public:
    bool has(std::string_view name) const { return value(name).has_value(); }
    /// The last value given; empty for a switch.
    std::optional<std::string> value(std::string_view name) const;
    /// Every value given, in order.
    std::vector<std::string> values(std::string_view name) const;

    void add(std::string_view name, std::string value);

private:
    struct Given {
        std::string name;
        std::string value;
    };
    std::vector<Given> m_given;
};

/// Where options may appear.
enum class Order {
    mixed,         ///< before, between and after the operands; `--` ends them
    options_first, ///< parsing stops at the first non-option argument; the rest is left for another
                   ///< program
};

struct Parsed {
    Options options;
    std::vector<std::string> operands;
    /// With Order::mixed: how many of the operands precede `--`; unset: there is no `--`.
    std::optional<std::size_t> before_dashes = {};
};

/// Parses arguments as users write them: `-t 2h`, `-t2h`, `--time 2h`, `--time=2h`, `-fQ`. `usage`
/// for an option that is not in the table (with the nearest name), and for a missing or surplus
/// value.
Result<Parsed> parse_options(std::span<const Option> table, Order order,
                             const std::vector<std::string>& arguments);

} // namespace gpuq::cli
