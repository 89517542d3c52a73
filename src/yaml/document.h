// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::yaml {

/// A value of a YAML document with its position. Scalars stay text; the reader interprets them.
struct Node {
    enum class Kind { nothing, text, list, map };
    struct Entry;

    Kind kind = Kind::nothing;
    std::string text;           ///< kind text
    std::vector<Node> items;    ///< kind list
    std::vector<Entry> entries; ///< kind map; in order, without duplicate keys
    std::string file;
    int line = 0; ///< first line is 1
    int column = 0;

    /// The value of `key`, or null.
    const Node* find(std::string_view key) const;
};
struct Node::Entry {
    std::string key;
    Node key_node; ///< for its position
    Node value;
};

/// Limits on the size and depth of a document.
constexpr std::size_t k_most_bytes = 1 << 20;
constexpr std::size_t k_deepest = 32;

/// Parses one document in UTF-8, with or without a byte order mark. `usage`, starting with
/// `FILE:LINE:COLUMN: `, for everything that YAML forbids, and for other encodings, duplicate keys,
/// non-text keys, anchors, aliases, tags and a second document. `file` is only used in messages.
Result<Node> parse(std::string_view text, const std::string& file);

/// `usage`: `FILE:LINE:COLUMN: TEXT`.
Error error_at(const Node& node, std::string_view text);

/// Refuses a value that is not a map, and keys that are not in `known`, suggesting the nearest
/// known one. A missing value counts as an empty map.
Result<void> expect_map(const Node& node, const std::vector<std::string>& known);

/// The text of a value; refuses lists, maps and missing values. `what` names the value:
/// `state_dir`.
Result<std::string> text_of(const Node& node, std::string_view what);

/// The texts of a list; refuses everything else, including empty lists.
Result<std::vector<std::string>> texts_of(const Node& node, std::string_view what);

} // namespace gpuq::yaml
