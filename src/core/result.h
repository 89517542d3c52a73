// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/exit_status.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gpuq {

/// A failure, described for users in one or two sentences without a trailing full stop: the
/// problem, the object, and the next step. `kind` decides the exit status (exit_status.h).
struct Error {
    enum class Kind {
        usage,          ///< invalid command line, file or value
        missing,        ///< the named run, job or file does not exist
        busy,           ///< not possible at the moment; the caller may retry
        denied,         ///< refused by a rule or by permissions
        unreachable,    ///< no response: the outcome is unknown
        lost,           ///< node failed or preempted, not continued
        max_wait,       ///< --max-wait exceeded
        stopped,        ///< stopped by a user
        time_limit,     ///< ended at its time limit
        not_executable, ///< the program exists but cannot be executed
        not_found,      ///< the program does not exist
        io,             ///< file system error
        internal,       ///< a bug in gpuq
    };
    Kind kind = Kind::internal;
    std::string text;

    bool operator==(const Error&) const = default;
};

constexpr Error::Kind last_of(Error::Kind)
{
    return Error::Kind::internal;
}
/// A kind that only a newer gpuq knows.
constexpr Error::Kind unknown_of(Error::Kind)
{
    return Error::Kind::internal;
}

/// The exit status that the contract assigns to an error.
ExitStatus exit_status_of(Error::Kind kind);

/// A value or an Error: a small subset of C++23's std::expected.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value)
        : m_state(std::in_place_index<0>, std::move(value))
    {
    }
    Result(Error error)
        : m_state(std::in_place_index<1>, std::move(error))
    {
    }

    bool has_value() const { return m_state.index() == 0; }
    explicit operator bool() const { return has_value(); }

    T& value() & { return std::get<0>(m_state); }
    const T& value() const& { return std::get<0>(m_state); }
    T&& value() && { return std::get<0>(std::move(m_state)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const& { return std::get<1>(m_state); }
    Error&& error() && { return std::get<1>(std::move(m_state)); }

private:
    std::variant<T, Error> m_state;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error)
        : m_error(std::move(error))
    {
    }

    bool has_value() const { return !m_error; }
    explicit operator bool() const { return has_value(); }
    const Error& error() const& { return *m_error; }
    Error&& error() && { return *std::move(m_error); }

private:
    std::optional<Error> m_error;
};

inline Error fail(Error::Kind kind, std::string text)
{
    return Error{kind, std::move(text)};
}

} // namespace gpuq

#define GPUQ_JOIN_(a, b) a##b
#define GPUQ_JOIN(a, b) GPUQ_JOIN_(a, b)

/// Returns from the function if `expression` has an error.
#define TRY(expression)                                                                            \
    do {                                                                                           \
        if (auto try_result = (expression); !try_result) {                                         \
            return std::move(try_result).error();                                                  \
        }                                                                                          \
    } while (false)

/// `TRY_ASSIGN(const int rows, count());` declares `rows`, or returns from the function on error.
#define TRY_ASSIGN(declaration, expression)                                                        \
    auto GPUQ_JOIN(try_result_, __LINE__) = (expression);                                          \
    if (!GPUQ_JOIN(try_result_, __LINE__)) {                                                       \
        return std::move(GPUQ_JOIN(try_result_, __LINE__)).error();                                \
    }                                                                                              \
    declaration = *std::move(GPUQ_JOIN(try_result_, __LINE__))
