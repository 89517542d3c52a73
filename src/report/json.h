// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gpuq::report {

/// A value of a JSON document. Unknown is null, and so is an empty optional. Times are ISO 8601 in
/// UTC, durations are numbers of seconds.
class Json {
public:
    using Members = std::vector<std::pair<std::string, Json>>;
    using Elements = std::vector<Json>;

    Json() = default; ///< null
    Json(std::same_as<bool> auto value)
        : m_value(value)
    {
    }
    template <std::integral Number>
    requires(!std::same_as<Number, bool>) Json(Number value)
        : m_value(static_cast<std::int64_t>(value))
    {
    }
    Json(double value); ///< null if not finite
    Json(const char* text)
        : m_value(std::string(text))
    {
    }
    Json(std::string_view text)
        : m_value(std::string(text))
    {
    }
    Json(std::string text)
        : m_value(std::move(text))
    {
    }
    Json(Time time);
    template <typename Rep, typename Period>
    Json(std::chrono::duration<Rep, Period> duration)
        : Json(std::int64_t{std::chrono::floor<std::chrono::seconds>(duration).count()})
    {
    }
    Json(JobId id);
    template <typename T>
    Json(const std::optional<T>& value)
    {
        if (value) {
            *this = Json(*value);
        }
    }

    /// `Json::object({{"name", "train"}, {"gpus", 1}})`, in this order.
    static Json object(Members members = {});
    static Json array(Elements elements = {});
    static Json array(const std::vector<std::string>& texts);

    using Value =
        std::variant<std::monostate, bool, std::int64_t, double, std::string, Members, Elements>;
    const Value& value() const { return m_value; }

private:
    Value m_value;
};

/// The document that `--json` prints: `"schema": 1`, then the members, and a newline. Pure ASCII,
/// and so safe to show on a terminal. Bytes that are not UTF-8 become U+FFFD.
std::string json_document(const Json::Members& members);

} // namespace gpuq::report
