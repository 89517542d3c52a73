// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Parts of a text. All results are views into it, so it must outlive them: a temporary string is
/// refused where its parts are collected. The locale does not matter.
namespace gpuq {

/// The parts between separators, empty ones too: always one more than there are separators. Each
/// character of `separators` is one.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);

/// The parts between separators that are not empty.
std::vector<std::string_view> fields(std::string_view text, std::string_view separators);

template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split(Temporary&& text, std::string_view separators) = delete;
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> fields(Temporary&& text, std::string_view separators) = delete;

/// The text before the first separator, and the text after it; without a separator: `text`, and an
/// empty text.
std::pair<std::string_view, std::string_view> cut(std::string_view text, char separator);

/// Without white space at both ends.
std::string_view trimmed(std::string_view text);

} // namespace gpuq
