// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::yaml {

/// A value of a YAML document and where it stands. Values stay texts: their reader gives them
/// types.
struct Node {
    enum class Kind { nothing, text, list, map };
    struct Entry;

    Kind kind = Kind::nothing;
    std::string text;           ///< of a text
    std::vector<Node> items;    ///< of a list
    std::vector<Entry> entries; ///< of a map, in order, every key once
    std::string file;
    int line = 0; ///< from 1
    int column = 0;

    /// The value of `key`, or null.
    const Node* find(std::string_view key) const;
};
struct Node::Entry {
    std::string key;
    Node key_node; ///< for its place
    Node value;
};

/// Larger or deeper documents are refused.
constexpr std::size_t k_most_bytes = 1 << 20;
constexpr std::size_t k_deepest = 32;

/// Reads one document, in UTF-8 with a byte order mark or without. `usage`, beginning with
/// `FILE:LINE:COLUMN: `, for anything that YAML forbids and for what we do: other encodings, keys
/// given twice, keys that are no texts, anchors, aliases, tags, a second document. `file` only
/// serves messages.
Result<Node> parse(std::string_view text, const std::string& file);

/// `usage`: `FILE:LINE:COLUMN: TEXT`.
Error error_at(const Node& node, std::string_view text);

/// Refuses a value that is no map, and a key that is not in `known`, naming the nearest one that
/// is. No value at all counts as an empty map.
Result<void> expect_map(const Node& node, const std::vector<std::string>& known);

/// The text of a value; refuses lists, maps and nothing. `what` names the value: `state_dir`.
Result<std::string> text_of(const Node& node, std::string_view what);

/// The texts of a list; refuses everything else, empty lists too.
Result<std::vector<std::string>> texts_of(const Node& node, std::string_view what);

} // namespace gpuq::yaml
