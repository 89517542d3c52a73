// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/conf.h"

#include "core/lower_case.h"
#include "govern/values.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

namespace gpuq::govern {
namespace {

bool is_space(char c)
{
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}

bool is_of_key(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// The position of the comment: the first `#` not escaped by a `\`.
std::size_t comment_in(std::string_view text)
{
    bool kept = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '#' && !kept) {
            return i;
        }
        kept = text[i] == '\\' && !kept;
    }
    return text.size();
}

/// Removes the `\` that continues a line; true if there was one.
bool cut_continuation(std::string& text)
{
    std::size_t end = text.size();
    while (end > 0 && is_space(text[end - 1])) {
        --end;
    }
    std::size_t first = end;
    while (first > 0 && text[first - 1] == '\\') {
        --first;
    }
    const bool continues = (end - first) % 2 == 1;
    text.erase(continues ? end - 1 : text.size());
    return continues;
}

std::string without_escapes(std::string_view text)
{
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        i += text[i] == '\\' ? 1 : 0;
        plain += i < text.size() ? std::string(1, text[i]) : "";
    }
    return plain;
}

/// Removes the leading characters that satisfy `is`, and returns them.
std::string_view take_while(std::string_view& text, bool (*is)(char))
{
    const auto end = std::find_if_not(text.begin(), text.end(), is);
    const auto size = static_cast<std::size_t>(end - text.begin());
    const std::string_view taken = text.substr(0, size);
    text.remove_prefix(size);
    return taken;
}

/// Reads the first key and its value: `Key = "a value"`, `include FILE`.
void read_first(ConfLine& line)
{
    std::string_view rest = line.text;
    take_while(rest, is_space);
    line.key = lower_case(take_while(rest, is_of_key));
    take_while(rest, is_space);
    const bool has_operator = rest.size() > 1 && rest[1] == '=' &&
                              std::string_view("-*+/").find(rest[0]) != std::string_view::npos;
    rest.remove_prefix(has_operator ? 1 : 0);
    if (rest.starts_with('=')) {
        rest.remove_prefix(1);
        take_while(rest, is_space);
    }
    const auto quote = rest.starts_with('"') ? rest.find('"', 1) : std::string_view::npos;
    line.value = quote != std::string_view::npos
                     ? rest.substr(1, quote - 1)
                     : take_while(rest, [](char c) { return !is_space(c); });
}

} // namespace

std::vector<ConfLine> lines_of(std::string_view conf)
{
    std::vector<ConfLine> lines;
    std::istringstream stream{std::string(conf)};
    ConfLine line;
    int number = 0;
    for (std::string text; std::getline(stream, text);) {
        ++number;
        line.number = line.text.empty() ? number : line.number;
        const std::size_t end = comment_in(text);
        line.comment = text.substr(std::min(end + 1, text.size()));
        text.erase(end);
        const bool continues = cut_continuation(text);
        line.text += text;
        if (continues && stream.peek() != std::istringstream::traits_type::eof()) {
            continue;
        }
        line.text = without_escapes(line.text);
        if (!std::all_of(line.text.begin(), line.text.end(), is_space)) {
            read_first(line);
            lines.push_back(std::move(line));
        }
        line = {};
    }
    return lines;
}

std::vector<std::string> partitions_in(const ConfLine& line)
{
    if (line.key != "partitionname") {
        return {};
    }
    std::set<std::string> names = as_set(line.value);
    names.insert(line.value);
    return {names.begin(), names.end()};
}

std::string included_file(const ConfLine& line, const std::string& from, const std::string& cluster)
{
    std::string name = line.value;
    for (auto at = name.find("%c"); at != std::string::npos; at = name.find("%c", at)) {
        name.replace(at, 2, cluster);
        at += cluster.size();
    }
    return (std::filesystem::path(from).parent_path() / name).lexically_normal().string();
}

} // namespace gpuq::govern
