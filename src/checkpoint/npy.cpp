// SPDX-License-Identifier: GPL-2.0-or-later
// .npy: a Python dictionary as text, then the numbers. See numpy.lib.format.
#include "checkpoint/formats.h"

#include "core/number.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;

/// numpy itself refuses more than 10000 unless configured otherwise.
constexpr std::uint64_t k_longest_header = 1 << 20;

/// The text after `'KEY':` in the dictionary, without leading blanks; nothing if there is no such
/// key.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key)
{
    const std::string quoted = fmt::format("'{}':", key);
    const std::size_t at = header.find(quoted);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    header.remove_prefix(at + quoted.size());
    header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
    return header;
}

/// Bytes of one element: `'<f4'` 4, `'<U3'` 12, `'<M8[ns]'` 8. Nothing for objects and records.
std::optional<std::uint64_t> item_size(std::string_view descr)
{
    if (!descr.starts_with('\'')) {
        return std::nullopt;
    }
    descr = descr.substr(1, descr.find('\'', 1) - 1);
    const std::size_t kind = descr.find_first_not_of("<>|=");
    if (kind == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view rest = descr.substr(kind + 1);
    const auto size = whole_number(rest.substr(0, rest.find('[')));
    if (!size || *size > std::numeric_limits<std::uint32_t>::max()) {
        return std::nullopt;
    }
    return descr[kind] == 'U' ? *size * 4 : *size;
}

std::optional<std::uint64_t> product(std::uint64_t left, std::uint64_t right)
{
    std::uint64_t value = 0;
    return __builtin_mul_overflow(left, right, &value) ? std::nullopt : std::optional(value);
}

/// For `(3, 4)`, 12 times `size`; nothing if the text is invalid or the product overflows.
std::optional<std::uint64_t> total(std::string_view shape, std::uint64_t size)
{
    const std::size_t close = shape.find(')');
    if (!shape.starts_with('(') || close == std::string_view::npos) {
        return std::nullopt;
    }
    shape = shape.substr(1, close - 1);
    std::optional<std::uint64_t> bytes = size;
    while (bytes && !shape.empty()) {
        const std::size_t comma = std::min(shape.find(','), shape.size());
        const auto number = whole_number(shape.substr(0, comma));
        bytes = number ? product(*bytes, *number) : std::nullopt;
        shape.remove_prefix(std::min(comma + 1, shape.size()));
        shape.remove_prefix(std::min(shape.find_first_not_of(' '), shape.size()));
    }
    return bytes;
}

/// For elements whose size is not in the dictionary: records, or pickled objects.
Judgement check_others(Bytes& bytes, std::string_view descr)
{
    if (descr.starts_with("'|O'") && bytes.last(1) != ".") {
        return incomplete("its pickle data has no end marker");
    }
    return {Says::settles, ""};
}

Judgement check_data(Bytes& bytes, std::string_view header, std::uint64_t there)
{
    const auto descr = value_of(header, "descr");
    const auto shape = value_of(header, "shape");
    if (!descr || !shape) {
        return incomplete("its .npy header is invalid");
    }
    const auto size = item_size(*descr);
    if (!size) {
        return check_others(bytes, *descr);
    }
    const auto wanted = total(*shape, *size);
    if (!wanted) {
        return incomplete("its .npy header is invalid");
    }
    if (there < *wanted) {
        return incomplete(fmt::format("{} of its {} bytes are present", there, *wanted));
    }
    // The file may contain more than one array.
    return {there == *wanted ? Says::whole : Says::settles, ""};
}

} // namespace

Judgement check_npy(Bytes& bytes)
{
    const auto start = bytes.at(0, 12);
    if (!start) {
        return incomplete("its .npy header is cut off");
    }
    const bool is_first_version = (*start)[6] == 1;
    const std::uint64_t length = little_endian(*start, 8, is_first_version ? 2 : 4);
    const std::uint64_t header = is_first_version ? 10 : 12;
    if (length > bytes.size() - header) {
        return incomplete("its .npy header is cut off");
    }
    if (length > k_longest_header) {
        return {Says::settles, ""};
    }
    const auto text = bytes.at(header, length);
    return text ? check_data(bytes, *text, bytes.size() - header - length)
                : incomplete("its .npy header is cut off");
}

} // namespace gpuq::checkpoint
