// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/metric_direction.h"

#include "core/lower_case.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace gpuq::telemetry {
namespace {

/// The parts of a name that are letters: `val/top5_acc` has `val`, `top` and `acc`, but f1 keeps
/// its number.
std::vector<std::string> components_of(const std::string& tag)
{
    std::vector<std::string> components(1);
    for (const char c : tag) {
        const bool is_part = std::isalpha(static_cast<unsigned char>(c)) != 0 ||
                             (c == '1' && components.back() == "f");
        if (is_part) {
            components.back() += c;
        } else if (!components.back().empty()) {
            components.emplace_back();
        }
    }
    return components;
}

template <std::size_t count>
bool has_component(const std::vector<std::string>& components,
                   const std::array<std::string_view, count>& known)
{
    return std::any_of(components.begin(), components.end(), [&](const std::string& one) {
        return std::find(known.begin(), known.end(), one) != known.end();
    });
}

template <std::size_t count>
bool has_part(const std::string& tag, const std::array<std::string_view, count>& parts)
{
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return tag.find(part) != std::string::npos; });
}

} // namespace

Better better_of(std::string_view tag)
{
    constexpr std::array<std::string_view, 3> k_lower_parts = {"loss", "error", "perplexity"};
    constexpr std::array<std::string_view, 8> k_lower_components = {"err", "ppl",  "mse", "rmse",
                                                                    "mae", "mape", "wer", "cer"};
    constexpr std::array<std::string_view, 4> k_higher_parts = {"accuracy", "score", "reward",
                                                                "bleu"};
    constexpr std::array<std::string_view, 11> k_higher_components = {
        "acc",  "f1",     "auc",     "auroc",     "map",   "iou",
        "miou", "return", "returns", "precision", "recall"};
    const std::string lower = lower_case(tag);
    const auto components = components_of(lower);
    if (has_part(lower, k_lower_parts) || has_component(components, k_lower_components)) {
        return Better::lower;
    }
    return has_part(lower, k_higher_parts) || has_component(components, k_higher_components)
               ? Better::higher
               : Better::unknown;
}

} // namespace gpuq::telemetry
