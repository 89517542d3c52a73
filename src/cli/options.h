// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// A row of a verb's table of options. Parsing, help, completion and the check of the man page
/// read it.
struct Option {
    char letter = 0;        ///< `t` of -t; 0: none
    std::string_view name;  ///< `time` of --time
    std::string_view value; ///< what stands for its value in help: `TIME`; empty: a switch
    std::string_view help;  ///< one line
    enum class State {
        built,
        reserved, ///< in the contract, not in this version: refused, and in no help
        hidden,   ///< for gpuq itself to say: taken, and in no help
    } state = State::built;
};

/// Options and operands of one use of a verb.
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

/// Where options may stand.
enum class Order {
    mixed,         ///< before, between and after the operands; `--` ends them
    options_first, ///< they end at the first word that is none: the rest is somebody else's
};

struct Parsed {
    Options options;
    std::vector<std::string> operands;
};

/// Reads `words` as people write them: `-t 2h`, `-t2h`, `--time 2h`, `--time=2h`, `-fQ`. `usage`
/// for an option that is not in a table (with the nearest name), a value missing or too many.
Result<Parsed> parse_options(std::span<const Option> table, Order order,
                             const std::vector<std::string>& words);

} // namespace gpuq::cli
