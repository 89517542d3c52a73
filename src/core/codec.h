// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Encodes values as bytes, for frames (wire/framing.h) and for answers of child processes. The
/// type of a value determines its encoding; no value needs a description of its own:
///
///     integer                   its bytes, little endian
///     bool, enum                one byte; at most `last_of` the enum
///     duration                  count, 8 bytes; not negative, at most k_longest_duration
///     Time                      microseconds since 1970, 8 bytes
///     std::string               length, 4 bytes; the bytes
///     Rest                      the bytes up to the end
///     std::optional             bool; the value, if there is one
///     std::vector               number of elements, 4 bytes; the elements
///     std::array, std::pair, std::tuple    the elements
///     any other struct          its members in the order of their declaration
///
/// An enum needs `constexpr E last_of(E)` in its namespace, which returns its last value. If there
/// is also `unknown_of(E)`, larger values are decoded as its result; otherwise they are invalid. A
/// struct may have `bool is_valid(const T&)`, which is then checked.
namespace gpuq {

constexpr auto k_longest_duration = std::chrono::years(100);

/// Bytes up to the end of the encoding; only as the last member of the last struct.
struct Rest : std::string {
    using std::string::string;
    Rest(std::string bytes)
        : std::string(std::move(bytes))
    {
    }
};

namespace codec {

/// Takes the place of any member in a list of initialisers.
struct AnyMember {
    template <typename T>
    operator T() const;
};

/// The number of members of an aggregate: the largest number of initialisers.
template <typename T, typename... Members>
constexpr std::size_t member_count()
{
    if constexpr (requires { T{Members{}..., AnyMember{}}; }) {
        return member_count<T, Members..., AnyMember>();
    } else {
        return sizeof...(Members);
    }
}

/// References to the members of an aggregate.
template <typename T>
constexpr auto members_of(T& value)
{
    constexpr std::size_t k_count = member_count<std::remove_const_t<T>>();
    static_assert(k_count <= 10);
    if constexpr (k_count == 0) {
        return std::tie();
    } else if constexpr (k_count == 1) {
        auto& [a] = value;
        return std::tie(a);
    } else if constexpr (k_count == 2) {
        auto& [a, b] = value;
        return std::tie(a, b);
    } else if constexpr (k_count == 3) {
        auto& [a, b, c] = value;
        return std::tie(a, b, c);
    } else if constexpr (k_count == 4) {
        auto& [a, b, c, d] = value;
        return std::tie(a, b, c, d);
    } else if constexpr (k_count == 5) {
        auto& [a, b, c, d, e] = value;
        return std::tie(a, b, c, d, e);
    } else if constexpr (k_count == 6) {
        auto& [a, b, c, d, e, f] = value;
        return std::tie(a, b, c, d, e, f);
    } else if constexpr (k_count == 7) {
        auto& [a, b, c, d, e, f, g] = value;
        return std::tie(a, b, c, d, e, f, g);
    } else if constexpr (k_count == 8) {
        auto& [a, b, c, d, e, f, g, h] = value;
        return std::tie(a, b, c, d, e, f, g, h);
    } else if constexpr (k_count == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = value;
        return std::tie(a, b, c, d, e, f, g, h, i);
    } else {
        auto& [a, b, c, d, e, f, g, h, i, j] = value;
        return std::tie(a, b, c, d, e, f, g, h, i, j);
    }
}

template <typename T>
concept Enum = std::is_enum_v<T>;
template <typename T>
concept Aggregate = std::is_aggregate_v<T> && std::is_class_v<T>;

} // namespace codec

/// Appends the encoding of values to a string.
class ValueWriter {
public:
    explicit ValueWriter(std::string& out)
        : m_out(out)
    {
    }
    template <std::integral T>
    void put(T value)
    {
        auto rest = static_cast<std::uint64_t>(value);
        for (std::size_t i = 0; i < sizeof(T); ++i, rest >>= 8) {
            m_out.push_back(static_cast<char>(rest & 0xff));
        }
    }
    template <codec::Enum E>
    void put(E value)
    {
        put(static_cast<std::uint8_t>(value));
    }
    template <typename Number, typename Unit>
    void put(std::chrono::duration<Number, Unit> value)
    {
        put(std::int64_t{value.count()});
    }
    void put(Time value) { put(std::int64_t{value.time_since_epoch().count()}); }
    void put(const std::string& value)
    {
        put(static_cast<std::uint32_t>(value.size()));
        m_out += value;
    }
    void put(const Rest& value) { m_out += value; }
    template <typename T>
    void put(const std::optional<T>& value)
    {
        put(value.has_value());
        if (value) {
            put(*value);
        }
    }
    template <typename T>
    void put(const std::vector<T>& values)
    {
        put(static_cast<std::uint32_t>(values.size()));
        for (const T& value : values) {
            put(value);
        }
    }
    template <typename... Members>
    void put(const std::tuple<Members...>& members)
    {
        std::apply([this](const auto&... each) { (this->put(each), ...); }, members);
    }
    template <typename First, typename Second>
    void put(const std::pair<First, Second>& pair)
    {
        put(std::tie(pair.first, pair.second));
    }
    template <typename T, std::size_t Size>
    void put(const std::array<T, Size>& values)
    {
        for (const T& value : values) {
            put(value);
        }
    }
    template <codec::Aggregate T>
    void put(const T& value)
    {
        put(codec::members_of(value));
    }

private:
    std::string& m_out;
};

/// Reads values. After bytes that are missing or invalid `ok()` is false, and the values read are
/// unspecified.
class ValueReader {
public:
    explicit ValueReader(std::string_view bytes)
        : m_left(bytes)
    {
    }
    bool ok() const { return m_ok; }
    bool at_end() const { return m_left.empty(); }

    template <std::integral T>
    void get(T& value)
    {
        std::uint64_t number = 0;
        const std::string_view bytes = take(sizeof(T));
        for (std::size_t i = bytes.size(); i > 0; --i) {
            number = (number << 8) | static_cast<unsigned char>(bytes[i - 1]);
        }
        value = static_cast<T>(number);
    }
    void get(bool& value)
    {
        const auto number = next<std::uint8_t>();
        check(number <= 1);
        value = number == 1;
    }
    template <codec::Enum E>
    void get(E& value)
    {
        const auto number = next<std::uint8_t>();
        if (number <= static_cast<std::uint8_t>(last_of(E{}))) {
            value = static_cast<E>(number);
        } else if constexpr (requires { unknown_of(E{}); }) {
            value = unknown_of(E{});
        } else {
            check(false);
        }
    }
    template <typename Number, typename Unit>
    void get(std::chrono::duration<Number, Unit>& value)
    {
        using Duration = std::chrono::duration<Number, Unit>;
        const auto count = next<std::int64_t>();
        check(count >= 0 &&
              count <= std::chrono::duration_cast<Duration>(k_longest_duration).count());
        value = Duration(m_ok ? count : 0);
    }
    void get(Time& value) { value = Time{std::chrono::microseconds{next<std::int64_t>()}}; }
    void get(std::string& value) { value = take(next<std::uint32_t>()); }
    void get(Rest& value) { value.assign(take(m_left.size())); }
    template <typename T>
    void get(std::optional<T>& value)
    {
        value = next<bool>() ? std::optional(next<T>()) : std::nullopt;
    }
    template <typename T>
    void get(std::vector<T>& values)
    {
        const auto count = next<std::uint32_t>();
        check(count <= m_left.size()); // each element has at least one byte
        values.clear();
        while (m_ok && values.size() < count) {
            get(values.emplace_back());
        }
    }
    template <typename... Members>
    void get(std::tuple<Members...>& members)
    {
        std::apply([this](auto&... each) { (this->get(each), ...); }, members);
    }
    template <typename First, typename Second>
    void get(std::pair<First, Second>& pair)
    {
        auto members = std::tie(pair.first, pair.second);
        get(members);
    }
    template <typename T, std::size_t Size>
    void get(std::array<T, Size>& values)
    {
        for (T& value : values) {
            get(value);
        }
    }
    template <codec::Aggregate T>
    void get(T& value)
    {
        auto members = codec::members_of(value);
        get(members);
        if constexpr (requires { is_valid(value); }) {
            check(is_valid(value));
        }
    }
    template <typename T>
    T next()
    {
        T value{};
        get(value);
        return value;
    }

private:
    void check(bool holds) { m_ok = m_ok && holds; }
    std::string_view take(std::size_t size)
    {
        check(size <= m_left.size());
        const std::string_view taken = m_left.substr(0, m_ok ? size : 0);
        m_left.remove_prefix(taken.size());
        return taken;
    }

    std::string_view m_left;
    bool m_ok = true;
};

/// The encoding of `values`, one after the other.
template <typename... Values>
std::string encoded(const Values&... values)
{
    std::string bytes;
    ValueWriter(bytes).put(std::tie(values...));
    return bytes;
}

/// The value that `bytes` encode; nullopt if any are missing, invalid or left over.
template <typename T>
std::optional<T> decoded(std::string_view bytes)
{
    ValueReader in(bytes);
    auto value = std::optional<T>(in.next<T>());
    return in.ok() && in.at_end() ? std::move(value) : std::nullopt;
}

} // namespace gpuq
