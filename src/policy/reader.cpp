// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/reader.h"

#include "core/nearest.h"
#include "core/number.h"
#include "core/size.h"
#include "core/walltime.h"
#include "policy/submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace gpuq::policy {
namespace {

using yaml::Node;

constexpr std::size_t k_longest_name = 40;

bool is_name(std::string_view text)
{
    const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    return !text.empty() && text.size() <= k_longest_name &&
           std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
           std::all_of(text.begin(), text.end(), fits);
}

} // namespace

bool is_user_name(std::string_view text)
{
    const auto fits = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= k_longest_name && text.front() != '-' &&
           std::all_of(text.begin(), text.end(), fits);
}

std::string to_line(const Finding& finding, const std::string& file)
{
    constexpr std::string_view k_keywords[] = {"error", "warning", "note"};
    std::string place = file;
    if (finding.line > 0) {
        place += fmt::format(":{}", finding.line);
    }
    if (finding.column > 0) {
        place += fmt::format(":{}", finding.column);
    }
    return fmt::format("{}: {}: {}", place, k_keywords[static_cast<int>(finding.weight)],
                       finding.text);
}

void Reader::note(const Node& node, std::string code, std::string text, Finding::Weight weight)
{
    m_findings.push_back({weight, node.line, node.column, std::move(code), std::move(text)});
}

void Reader::map(const Node& node, std::string_view what, std::initializer_list<Field> fields)
{
    if (node.kind != Node::Kind::map && node.kind != Node::Kind::nothing) {
        note(node, "not-a-map", fmt::format("{} must be `name: value` lines", what));
        return;
    }
    std::vector<std::string> known;
    for (const Field& field : fields) {
        known.emplace_back(field.name);
        if (field.need == Need::yes && node.find(field.name) == nullptr) {
            note(node, "missing", fmt::format("{} needs '{}'", what, field.name));
        }
    }
    for (const Node::Entry& entry : node.entries) {
        const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& candidate) {
            return candidate.name == entry.key;
        });
        if (field != fields.end()) {
            field->read(entry.value);
        } else {
            note(entry.key_node, "unknown-name",
                 fmt::format("unknown name '{}'{} in {}; there are: {}", entry.key,
                             did_you_mean(entry.key, known), what, fmt::join(known, ", ")));
        }
    }
}

void Reader::names(const Node& node, std::string_view what,
                   const std::function<void(const std::string&, const Node&, const Node&)>& read)
{
    if (node.kind != Node::Kind::map) {
        note(node, "not-a-map", fmt::format("{} must be `NAME: ...` lines", what));
        return;
    }
    for (const Node::Entry& entry : node.entries) {
        if (name(entry.key_node).line > 0) {
            read(entry.key, entry.key_node, entry.value);
        }
    }
}

Rule<int> Reader::number(const Node& node, int least, int most)
{
    const auto value = node.kind == Node::Kind::text ? whole_number(node.text) : std::nullopt;
    if (!value || *value < static_cast<std::uint64_t>(least) ||
        *value > static_cast<std::uint64_t>(most)) {
        note(node, "not-a-number",
             fmt::format("'{}' is not a whole number from {} to {}", node.text, least, most));
        return {least, 0};
    }
    return {static_cast<int>(*value), node.line, node.column};
}

Rule<double> Reader::weight(const Node& node)
{
    // Digits, a point, digits: independent of the locale, and without an exponent.
    const std::string_view text = node.text;
    const std::size_t point = text.find('.');
    const auto whole = whole_number(text.substr(0, point));
    const std::string_view tail = point == std::string_view::npos ? "0" : text.substr(point + 1);
    const auto part = whole_number(tail);
    if (node.kind != Node::Kind::text || !whole || !part || tail.size() > 6 || *whole > 1000) {
        note(node, "not-a-number",
             fmt::format("'{}' is not a weight: a number such as 1 or 0.25", node.text));
        return {1.0, 0};
    }
    double scale = 1;
    for (std::size_t i = 0; i < tail.size(); ++i) {
        scale *= 10;
    }
    return {static_cast<double>(*whole) + static_cast<double>(*part) / scale, node.line,
            node.column};
}

Rule<seconds> Reader::duration(const Node& node)
{
    // A plain number would mean minutes in some options, and seconds in others.
    const bool bare = whole_number(node.text) && node.text != "0";
    const auto value = node.kind == Node::Kind::text && !bare
                           ? parse_duration(node.text)
                           : Result<seconds>(fail(Error::Kind::usage, "needs a unit"));
    if (!value) {
        note(node, "not-a-time",
             fmt::format("'{}' is not a length of time such as 90s, 30m, 2h or 7d: {}", node.text,
                         value.error().text));
        return {};
    }
    return {*value, node.line, node.column};
}

Rule<minutes> Reader::walltime(const Node& node)
{
    const Rule<seconds> value = duration(node);
    if (value.line > 0 && (value.value.count() == 0 || value.value.count() % 60 != 0)) {
        note(node, "not-a-time",
             fmt::format("'{}' must be whole minutes, at least one", node.text));
        return {};
    }
    return {std::chrono::duration_cast<minutes>(value.value), value.line, value.column};
}

Rule<std::uint64_t> Reader::memory(const Node& node)
{
    const bool bare = whole_number(node.text).has_value();
    const auto value = node.kind == Node::Kind::text && !bare
                           ? parse_memory_mib(node.text)
                           : Result<std::uint64_t>(fail(Error::Kind::usage, "needs a unit"));
    if (!value || *value == 0) {
        note(node, "not-a-size",
             fmt::format("'{}' is not an amount of memory such as 500M or 16G{}", node.text,
                         value ? "" : ": " + value.error().text));
        return {};
    }
    return {*value, node.line, node.column};
}

Rule<std::vector<GpuCount>> Reader::gpus(const Node& node)
{
    auto counts = node.kind == Node::Kind::text
                      ? parse_gpu_counts(node.text)
                      : Result<std::vector<GpuCount>>(fail(Error::Kind::usage, "no text"));
    if (!counts || counts->empty()) {
        note(node, "not-gpus",
             fmt::format("'{}' is not a number of GPUs such as 4, k80:4 or k80:2,p100:2",
                         node.text));
        return {};
    }
    return {*std::move(counts), node.line, node.column};
}

Rule<std::string> Reader::text(const Node& node)
{
    constexpr std::size_t k_longest = 200;
    const bool fits = node.kind == Node::Kind::text && !node.text.empty() &&
                      node.text.size() <= k_longest &&
                      std::none_of(node.text.begin(), node.text.end(),
                                   [](unsigned char c) { return c < ' ' || c == 0x7f; });
    if (!fits) {
        note(node, "not-a-text",
             fmt::format("one line of text is expected, of at most {} bytes", k_longest));
        return {};
    }
    return {node.text, node.line, node.column};
}

Rule<std::string> Reader::one(const Node& node, IsName is_name)
{
    if (node.kind != Node::Kind::text || !is_name(node.text)) {
        note(node, "not-a-name",
             fmt::format("'{}' is not a name: letters, digits, '-' and '_', at most {}", node.text,
                         k_longest_name));
        return {};
    }
    return {node.text, node.line, node.column};
}

Rule<std::vector<std::string>> Reader::some(const Node& node, IsName is_name, Empty empty)
{
    if (node.kind == Node::Kind::list && node.items.empty() && empty == Empty::refused) {
        note(node, "missing", "an empty list: write at least one name, or remove the line");
    }
    Rule<std::vector<std::string>> names{{}, node.line, node.column};
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        const Rule<std::string> name = one(item, is_name);
        if (std::find(names.value.begin(), names.value.end(), name.value) != names.value.end()) {
            note(item, "twice", fmt::format("duplicate '{}'", name.value));
        } else if (name.line > 0) {
            names.value.push_back(name.value);
        }
    }
    return names;
}

Rule<std::string> Reader::word(const Node& node, const std::vector<std::string>& choices)
{
    if (node.kind != Node::Kind::text ||
        std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
        note(node, "not-a-word",
             fmt::format("'{}' is not {}", node.text, fmt::join(choices, " or ")));
        return {};
    }
    return {node.text, node.line, node.column};
}

Rule<std::string> Reader::name(const Node& node)
{
    return one(node, is_name);
}

Rule<std::vector<std::string>> Reader::some_names(const Node& node, Empty empty)
{
    return some(node, is_name, empty);
}

Rule<std::vector<std::string>> Reader::user_names(const Node& node)
{
    return some(node, is_user_name, Empty::refused);
}

Rule<std::vector<std::string>> Reader::some_texts(const Node& node)
{
    Rule<std::vector<std::string>> texts{{}, node.line, node.column};
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        texts.value.push_back(text(item).value);
    }
    return texts;
}

} // namespace gpuq::policy
