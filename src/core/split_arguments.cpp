// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/split_arguments.h"

#include <fmt/format.h>

#include <optional>

namespace gpuq {
namespace {

bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/// Parses one line from left to right.
class Splitter {
public:
    explicit Splitter(std::string_view line)
        : m_line(line)
    {
    }

    Result<std::vector<std::string>> arguments()
    {
        while (m_at < m_line.size()) {
            TRY(step(m_line[m_at]));
            ++m_at;
        }
        finish_word();
        return m_arguments;
    }

private:
    Result<void> step(char c)
    {
        if (is_blank(c)) {
            finish_word();
            return {};
        }
        if (!m_word) {
            m_word.emplace();
        }
        switch (c) {
        case '\'':
            return single_quoted();
        case '"':
            return double_quoted();
        case '\\':
            return escaped();
        default:
            *m_word += c;
            return {};
        }
    }

    Result<void> single_quoted()
    {
        const std::size_t end = m_line.find('\'', m_at + 1);
        if (end == std::string_view::npos) {
            return open_quote('\'');
        }
        *m_word += m_line.substr(m_at + 1, end - m_at - 1);
        m_at = end;
        return {};
    }

    Result<void> double_quoted()
    {
        for (++m_at; m_at < m_line.size(); ++m_at) {
            const char c = m_line[m_at];
            if (c == '"') {
                return {};
            }
            const char next = m_at + 1 < m_line.size() ? m_line[m_at + 1] : '\0';
            const bool escape =
                c == '\\' && std::string_view("\\\"$`").find(next) != std::string_view::npos;
            m_at += escape ? 1 : 0;
            *m_word += m_line[m_at];
        }
        return open_quote('"');
    }

    Result<void> escaped()
    {
        if (m_at + 1 == m_line.size()) {
            return fail(Error::Kind::usage, fmt::format("'{}' ends with a backslash", m_line));
        }
        *m_word += m_line[++m_at];
        return {};
    }

    Error open_quote(char quote) const
    {
        return fail(Error::Kind::usage, fmt::format("a {} is never closed in: {}", quote, m_line));
    }

    void finish_word()
    {
        if (m_word) {
            m_arguments.push_back(*m_word);
            m_word.reset();
        }
    }

    std::string_view m_line;
    std::size_t m_at = 0;
    std::optional<std::string> m_word; ///< nullopt between arguments; `''` is an empty argument
    std::vector<std::string> m_arguments;
};

} // namespace

Result<std::vector<std::string>> split_arguments(std::string_view line)
{
    return Splitter(line).arguments();
}

std::vector<char*> pointers(const std::vector<std::string>& arguments)
{
    std::vector<char*> found;
    found.reserve(arguments.size() + 1);
    for (const std::string& word : arguments) {
        found.push_back(const_cast<char*>(word.c_str()));
    }
    found.push_back(nullptr);
    return found;
}

} // namespace gpuq
