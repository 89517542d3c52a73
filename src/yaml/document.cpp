// SPDX-License-Identifier: GPL-2.0-or-later
#include "yaml/document.h"

#include "core/nearest.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace gpuq::yaml {
namespace {

/// Thrown by event handlers to leave yaml-cpp's parser.
struct Refused {
    Error error;
};

Node node_at(Node::Kind kind, const std::string& file, const YAML::Mark& mark)
{
    Node node;
    node.kind = kind;
    node.file = file;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
}

/// False for a quoted text that begins at `begin` and is not terminated: yaml-cpp silently extends
/// it to the end of the file.
bool is_closed(std::string_view source, std::size_t begin)
{
    const char quote = begin < source.size() ? source[begin] : ' ';
    if (quote != '\'' && quote != '"') {
        return true;
    }
    for (std::size_t at = begin + 1; at < source.size(); ++at) {
        const bool doubled = quote == '\'' && source.substr(at, 2) == "''";
        if (doubled || (quote == '"' && source[at] == '\\')) {
            ++at;
        } else if (source[at] == quote) {
            return true;
        }
    }
    return false;
}

/// Builds the tree from the parser's events and refuses unsupported constructs.
class Builder : public YAML::EventHandler {
public:
    Builder(std::string_view source, const std::string& file)
        : m_source(source)
        , m_file(file)
    {
    }

    Node take() { return std::move(m_root); }

    void OnDocumentStart(const YAML::Mark& mark) override
    {
        m_root = node_at(Node::Kind::nothing, m_file, mark);
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override
    {
        add(node_at(Node::Kind::nothing, m_file, mark), "", anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override
    {
        refuse(mark, "aliases (*name) are not allowed");
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override
    {
        Node node = node_at(Node::Kind::text, m_file, mark);
        node.text = value;
        if (tag == "!" && !is_closed(m_source, static_cast<std::size_t>(mark.pos))) {
            throw Refused{error_at(node, "this quote is never closed")};
        }
        add(std::move(node), tag, anchor);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override
    {
        open(node_at(Node::Kind::list, m_file, mark), tag, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override
    {
        open(node_at(Node::Kind::map, m_file, mark), tag, anchor);
    }
    void OnMapEnd() override { close(); }

private:
    /// A list or map being filled; in a map, a key waiting for its value.
    struct Open {
        Node node;
        std::optional<Node> key;
    };

    [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view text) const
    {
        throw Refused{error_at(node_at(Node::Kind::nothing, m_file, mark), text)};
    }

    static void check(const Node& node, const std::string& tag, YAML::anchor_t anchor)
    {
        if (anchor != YAML::NullAnchor) {
            throw Refused{error_at(node, "anchors (&name) are not allowed")};
        }
        // The parser reports `?` for plain and `!` for quoted scalars.
        if (!tag.empty() && tag != "?" && tag != "!") {
            throw Refused{error_at(node, fmt::format("tags ({}) are not allowed", tag))};
        }
    }

    void open(Node node, const std::string& tag, YAML::anchor_t anchor)
    {
        check(node, tag, anchor);
        if (m_open.size() == k_deepest) {
            throw Refused{error_at(node, fmt::format("deeper than {} levels", k_deepest))};
        }
        m_open.push_back({std::move(node), std::nullopt});
    }

    void close()
    {
        Node node = std::move(m_open.back().node);
        m_open.pop_back();
        add(std::move(node), "", YAML::NullAnchor);
    }

    void add(Node node, const std::string& tag, YAML::anchor_t anchor)
    {
        check(node, tag, anchor);
        if (m_open.empty()) {
            m_root = std::move(node);
        } else if (m_open.back().node.kind == Node::Kind::list) {
            m_open.back().node.items.push_back(std::move(node));
        } else if (!m_open.back().key) {
            add_key(m_open.back(), std::move(node));
        } else {
            add_value(m_open.back(), std::move(node));
        }
    }

    static void add_key(Open& open, Node key)
    {
        if (key.kind != Node::Kind::text) {
            throw Refused{error_at(key, "a key must be a plain word")};
        }
        for (const Node::Entry& entry : open.node.entries) {
            if (entry.key == key.text) {
                throw Refused{error_at(key, fmt::format("duplicate '{}', first in line {}",
                                                        key.text, entry.key_node.line))};
            }
        }
        open.key = std::move(key);
    }

    static void add_value(Open& open, Node value)
    {
        Node key = *std::move(open.key);
        open.key.reset();
        std::string name = key.text;
        open.node.entries.push_back({std::move(name), std::move(key), std::move(value)});
    }

    std::string_view m_source;
    const std::string& m_file;
    Node m_root;
    std::vector<Open> m_open;
};

Result<Node> parse_one(std::string_view text, const std::string& file)
{
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(text, file);
    if (!parser.HandleNextDocument(builder)) {
        return node_at(Node::Kind::nothing, file, YAML::Mark{});
    }
    Node root = builder.take();
    Builder second(text, file);
    if (parser.HandleNextDocument(second)) {
        return error_at(second.take(), "a second document is not allowed");
    }
    return root;
}

/// Translates yaml-cpp's messages about malformed files for the author of the file.
std::string describe(const std::string& message)
{
    namespace ErrorTexts = YAML::ErrorMsg;
    static const std::map<std::string_view, const char*> k_keywords = {
        {ErrorTexts::END_OF_MAP,
         "this line does not belong here: it is indented unlike its neighbours, "
         "or a line before it lacks its ':', quote or bracket"},
        {ErrorTexts::END_OF_MAP_FLOW,
         "a '{' is not closed: a '}' or a ',' is missing at or before this; "
         "quote a text that contains [ ]"},
        {ErrorTexts::END_OF_SEQ, "this line is not indented like the '- ' lines of its list"},
        {ErrorTexts::END_OF_SEQ_FLOW,
         "a '[' is not closed: a ']' or a ',' is missing at or before this; "
         "quote a text that contains [ ]"},
        {ErrorTexts::UNKNOWN_TOKEN, "no value begins with this character: quote the text"},
        {ErrorTexts::EOF_IN_SCALAR, "a quote is not closed"},
        {ErrorTexts::CHAR_IN_SCALAR, "unexpected text after the value: quote the text"},
        {ErrorTexts::FLOW_END, "a '}' or ']' that closes nothing"},
        {ErrorTexts::BLOCK_ENTRY, "a '- ' where no list is possible: put it on its own line"},
        {ErrorTexts::MAP_KEY, "a '?' where none is possible: quote the text"},
        {ErrorTexts::MAP_VALUE,
         "a ':' where none is possible: put each name on its own line, indented "
         "like its neighbours; quote a text that contains ': '"},
    };
    const auto found = k_keywords.find(message);
    return found == k_keywords.end() ? message : found->second;
}

/// The first line indented with a tab; yaml-cpp only reports a later error.
std::optional<int> line_with_tab(std::string_view text, int last)
{
    std::size_t begin = 0;
    for (int line = 0; line <= last && begin < text.size(); ++line) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view indent =
            text.substr(begin, std::min(text.find_first_not_of(" \t", begin), end) - begin);
        if (indent.find('\t') != std::string_view::npos) {
            return line;
        }
        begin = end + 1;
    }
    return std::nullopt;
}

/// Offset of the first byte that is not allowed in a file: yaml-cpp guesses other encodings and
/// passes on bytes that it cannot decode.
std::optional<std::size_t> first_foreign_byte(std::string_view text)
{
    const auto control = std::find_if(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
    });
    const auto at = static_cast<std::size_t>(control - text.begin());
    const auto other = first_not_utf8(text.substr(0, at));
    return other ? other : at < text.size() ? std::optional(at) : std::nullopt;
}

Result<void> check_bytes(std::string_view text, const std::string& file)
{
    const auto at = first_foreign_byte(text);
    if (!at) {
        return {};
    }
    const std::string_view before = text.substr(0, *at);
    Node place;
    place.file = file;
    place.line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    place.column = static_cast<int>(*at - (before.rfind('\n') + 1)) + 1;
    const auto byte = static_cast<unsigned char>(text[*at]);
    const bool utf16 = before.empty() ? byte >= 0xfe : byte == 0;
    return error_at(place, byte == 0x7f || (byte < 0x20 && byte != 0)
                               ? fmt::format("control character 0x{:02x} is not allowed", byte)
                               : fmt::format("the byte 0x{:02x} is not UTF-8: save the file in "
                                             "UTF-8{}",
                                             byte, utf16 ? ", it seems to be in UTF-16" : ""));
}

Error syntax_error(const YAML::Exception& exception, std::string_view text, const std::string& file)
{
    Node place = node_at(Node::Kind::nothing, file, exception.mark);
    if (const auto line = line_with_tab(text, exception.mark.line)) {
        place.line = *line + 1;
        place.column = 1;
        return error_at(place, "a tab: indent lines with spaces only");
    }
    return error_at(place, describe(exception.msg));
}

} // namespace

const Node* Node::find(std::string_view key) const
{
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& candidate) { return candidate.key == key; });
    return entry == entries.end() ? nullptr : &entry->value;
}

Result<Node> parse(std::string_view text, const std::string& file)
{
    if (text.size() > k_most_bytes) {
        return fail(Error::Kind::usage,
                    fmt::format("{}: larger than {} MiB", file, k_most_bytes >> 20));
    }
    constexpr std::string_view k_byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(k_byte_order_mark)) {
        text.remove_prefix(k_byte_order_mark.size());
    }
    TRY(check_bytes(text, file));
    try {
        return parse_one(text, file);
    } catch (const Refused& refused) {
        return refused.error;
    } catch (const YAML::Exception& exception) {
        return syntax_error(exception, text, file);
    }
}

Error error_at(const Node& node, std::string_view text)
{
    return fail(Error::Kind::usage,
                fmt::format("{}:{}:{}: {}", node.file, node.line, node.column, text));
}

Result<void> expect_map(const Node& node, const std::vector<std::string>& known)
{
    if (node.kind != Node::Kind::map && node.kind != Node::Kind::nothing) {
        return error_at(node, "expected `name: value` lines");
    }
    for (const Node::Entry& entry : node.entries) {
        if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
            return error_at(entry.key_node,
                            fmt::format("unknown name '{}'{}; there are: {}", entry.key,
                                        did_you_mean(entry.key, known), fmt::join(known, ", ")));
        }
    }
    return {};
}

Result<std::string> text_of(const Node& node, std::string_view what)
{
    if (node.kind != Node::Kind::text) {
        return error_at(node, fmt::format("{} must be a single value", what));
    }
    return node.text;
}

Result<std::vector<std::string>> texts_of(const Node& node, std::string_view what)
{
    if (node.kind != Node::Kind::list || node.items.empty()) {
        return error_at(node, fmt::format("{} must be a list of words: [a, b]", what));
    }
    std::vector<std::string> texts;
    for (const Node& item : node.items) {
        TRY_ASSIGN(std::string text, text_of(item, fmt::format("each word of {}", what)));
        texts.push_back(std::move(text));
    }
    return texts;
}

} // namespace gpuq::yaml
