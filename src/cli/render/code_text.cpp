// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/code_text.h"

#include "core/number.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using report::Json;

/// The first names, and the number of others.
std::string names_text(const std::vector<std::string>& names)
{
    constexpr std::size_t k_most = 3;
    const std::size_t shown = std::min(names.size(), k_most);
    return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + shown, ", "),
                       names.size() > k_most ? fmt::format(" and {} more", names.size() - k_most)
                                             : "");
}

} // namespace

std::vector<std::string> code_lines(const CodeFacts& code)
{
    constexpr std::size_t k_digits = 10;
    std::vector<std::string> lines{fmt::format("snapshot of {}", counted(code.files, "file"))};
    if (!code.commit.empty()) {
        lines.front() +=
            fmt::format(", commit {}{}", code.commit.substr(0, k_digits),
                        !code.dirty           ? " (no longer in the repository)"
                        : code.dirty->empty() ? ""
                                              : " with changes in " + names_text(*code.dirty));
    }
    if (code.left_out > 0) {
        lines.push_back(
            fmt::format("not part of it: {} of data or output", counted(code.left_out, "file")));
    }
    if (!code.changed.empty()) {
        lines.push_back("changed since: " + names_text(code.changed));
    }
    return lines;
}

Json code_json(const std::optional<CodeFacts>& code)
{
    return code ? Json::object({{"id", code->id},
                                {"root", code->root},
                                {"commit", code->commit.empty() ? Json() : Json(code->commit)},
                                {"dirty", code->dirty ? Json::array(*code->dirty) : Json()},
                                {"files", code->files},
                                {"left_out", code->left_out},
                                {"changed", Json::array(code->changed)}})
                : Json();
}

} // namespace gpuq::cli
