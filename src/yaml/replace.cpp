// SPDX-License-Identifier: GPL-2.0-or-later
#include "yaml/replace.h"

#include "yaml/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>

namespace gpuq::yaml {
namespace {

const Node* scalar_at(const Node& node, int line, int column)
{
    if (node.kind == Node::Kind::text && node.line == line && node.column == column) {
        return &node;
    }
    for (const Node& item : node.items) {
        if (const Node* found = scalar_at(item, line, column)) {
            return found;
        }
    }
    for (const Node::Entry& entry : node.entries) {
        if (const Node* found = scalar_at(entry.value, line, column)) {
            return found;
        }
    }
    return nullptr;
}

/// The offset of the first byte of each line.
std::vector<std::size_t> line_begins(std::string_view text)
{
    std::vector<std::size_t> begins{0};
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1)) {
        begins.push_back(at + 1);
    }
    return begins;
}

/// The scalar as it is written at `at`: plain, or between quotes without escapes.
std::optional<std::string> written(std::string_view text, std::size_t at, const Node& scalar)
{
    for (const char* quote : {"", "'", "\""}) {
        std::string form = quote + scalar.text + quote;
        if (!scalar.text.empty() && text.substr(at, form.size()) == form) {
            return form;
        }
    }
    return std::nullopt;
}

bool is_plain_text(std::string_view text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("-_.,:[]").find(static_cast<char>(c)) != std::string_view::npos;
    });
}

/// Whether a value of the document at this position is `text`.
bool has_value_at(std::string_view document, const std::string& file, const Replacement& value)
{
    const auto root = parse(document, file);
    const Node* const scalar = root ? scalar_at(*root, value.line, value.column) : nullptr;
    return scalar != nullptr && scalar->text == value.text;
}

/// Adds or removes blanks before the comment of the line that contains `at`, which has moved by
/// `growth` columns.
void realign_comment(std::string& text, std::size_t at, std::ptrdiff_t growth)
{
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t comment = text.find(" #", at);
    if (comment == std::string::npos || comment >= end) {
        return;
    }
    if (text.substr(at, comment - at).find_first_of("'\"") != std::string::npos) {
        return; // it may be a part of a quoted text
    }
    const std::size_t before = text.find_last_not_of(' ', comment) + 1;
    const auto blanks = static_cast<std::ptrdiff_t>(comment + 1 - before);
    if (blanks < 2 && growth >= 0) {
        return; // it is in no column of comments
    }
    const auto wanted = std::max<std::ptrdiff_t>(1, blanks - growth);
    text.replace(before, comment + 1 - before, static_cast<std::size_t>(wanted), ' ');
}

} // namespace

Result<std::string> with_replaced(std::string_view text, const std::string& file,
                                  std::vector<Replacement> replacements)
{
    TRY_ASSIGN(const Node root, parse(text, file));
    const std::vector<std::size_t> begins = line_begins(text);
    // From the end, so that earlier positions stay valid.
    std::sort(replacements.begin(), replacements.end(), [](const auto& one, const auto& other) {
        return std::tie(one.line, one.column) > std::tie(other.line, other.column);
    });
    std::string result(text);
    for (const Replacement& each : replacements) {
        const auto refused = [&](std::string_view why) {
            return fail(Error::Kind::usage,
                        fmt::format("{}:{}:{}: {}", file, each.line, each.column, why));
        };
        const Node* const scalar = scalar_at(root, each.line, each.column);
        if (scalar == nullptr) {
            return refused("no value is here");
        }
        const std::size_t at = begins[static_cast<std::size_t>(each.line) - 1] +
                               static_cast<std::size_t>(each.column) - 1;
        const auto old = written(text, at, *scalar);
        if (!old || !is_plain_text(each.text)) {
            return refused("this value can not be replaced: write it on one line, without escapes");
        }
        const bool is_quoted = old->size() > scalar->text.size();
        std::string now = is_quoted ? old->front() + each.text + old->back() : each.text;
        result.replace(at, old->size(), now);
        if (!is_quoted && !has_value_at(result, file, each)) { // e.g. a comma between braces
            result.replace(at, now.size(), "'" + each.text + "'");
            now = "'" + each.text + "'";
        }
        realign_comment(result, at + now.size(),
                        static_cast<std::ptrdiff_t>(now.size()) -
                            static_cast<std::ptrdiff_t>(old->size()));
    }
    return result;
}

} // namespace gpuq::yaml
