// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/token.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gpuq::credentials {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr minutes k_untold{10};
/// The end of the year 9999; larger values are not taken for times.
constexpr std::int64_t k_last_second = 253402300799;
constexpr std::string_view k_blanks = " \t\n\v\f\r"; ///< C99's isspace

/// The characters of RFC 6750's b64token, which include the dots of a JWT.
bool is_of_a_token(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

int value_of(char c)
{
    constexpr std::string_view k_digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const std::size_t at = k_digits.find(c);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

/// base64url (RFC 4648) without padding; empty for anything else.
std::string decoded(std::string_view text)
{
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const int value = value_of(c);
        if (value < 0) {
            return "";
        }
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes += static_cast<char>(bits >> count & 0xff);
        }
    }
    return bytes;
}

std::optional<Time> time_in(const json& claims, const char* name)
{
    const auto found = claims.find(name);
    if (found == claims.end() || !found->is_number()) {
        return std::nullopt;
    }
    const double value = found->get<double>();
    if (!(value > 0) || value > static_cast<double>(k_last_second)) {
        return std::nullopt;
    }
    return Time(seconds(static_cast<std::int64_t>(value)));
}

} // namespace

Result<std::string> token_text(std::string_view text)
{
    const std::size_t first = text.find_first_not_of(k_blanks);
    if (first == std::string_view::npos) {
        return fail(Error::Kind::missing, "there is no token in it");
    }
    text = text.substr(first, text.find_last_not_of(k_blanks) - first + 1);
    if (text.size() > k_largest_token || !std::all_of(text.begin(), text.end(), is_of_a_token)) {
        return fail(Error::Kind::usage, "its content is not a bearer token");
    }
    return std::string(text);
}

Token token_facts(std::string_view token)
{
    const std::size_t first = token.find('.');
    const std::size_t second = token.find('.', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
        return {};
    }
    const json claims =
        json::parse(decoded(token.substr(first + 1, second - first - 1)), nullptr, false);
    if (!claims.is_object()) {
        return {};
    }
    auto issued = time_in(claims, "nbf");
    return {issued ? issued : time_in(claims, "iat"), time_in(claims, "exp")};
}

bool is_better(const Token& one, const Token& other)
{
    return !one.expires || !other.expires || *one.expires > *other.expires;
}

Time refreshed_at(const Token& token, Time got)
{
    if (!token.expires) {
        return got + k_untold;
    }
    const Time issued = std::min(token.issued.value_or(got), *token.expires);
    return issued + (*token.expires - issued) / 2;
}

} // namespace gpuq::credentials
