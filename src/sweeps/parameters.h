// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The parameters of a sweep and the values that its tries get. Pure.
namespace gpuq::sweeps {

/// The largest number of tries in a sweep.
inline constexpr std::size_t k_most_tries = 100'000;
/// The largest value of a parameter, in bytes.
inline constexpr std::size_t k_longest_value = 4096;

/// The values of one try by parameter, in the order of the sweep's parameters.
using Values = std::vector<std::string>;

/// `--over NAME=VALUES`: a parameter, and the values that it may have.
struct Parameter {
    /// `lr=1e-4,3e-4` or `act=relu|gelu`: one of these.
    using Choices = std::vector<std::string>;
    /// `layers=2..8`: whole numbers, both ends included.
    struct Integers {
        std::int64_t low = 0, high = 0;
        bool operator==(const Integers&) const = default;
    };
    /// `lr=0.1..0.9`, `lr=log:1e-5..1e-2`: real numbers, evenly or with evenly distributed
    /// logarithms.
    struct Reals {
        double low = 0, high = 0;
        bool logarithmic = false;
        bool operator==(const Reals&) const = default;
    };

    std::string name; ///< a valid identifier
    std::variant<Choices, Integers, Reals> values;
    bool operator==(const Parameter&) const = default;
};

/// Checks a name: a letter or `_`, then letters, digits and `_`, at most 64 characters. `usage`.
Result<void> check_parameter_name(std::string_view name);

/// Parses the value of `--over`. A value without `|` is split at its commas. `usage`.
Result<Parameter> parse_parameter(std::string_view text);

/// All combinations, the last parameter varying fastest. `usage`: a parameter has no finite number
/// of values, or there are more than k_most_tries combinations.
Result<std::vector<Values>> grid(const std::vector<Parameter>& parameters);

/// `count` random combinations, the same for the same seed on every machine, all different unless
/// the parameters have too few values: then fewer.
std::vector<Values> sample(const std::vector<Parameter>& parameters, std::size_t count,
                           std::uint64_t seed);

} // namespace gpuq::sweeps
