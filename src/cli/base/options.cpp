// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/options.h"

#include "core/nearest.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gpuq::cli {
namespace {

/// `-t,--time`, the declaration for CLI11.
std::string declaration(const Option& row)
{
    return row.letter == 0 ? fmt::format("--{}", row.name)
                           : fmt::format("-{},--{}", row.letter, row.name);
}

Error no_such_option(std::span<const Option> table, const std::string& word)
{
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    for (const Option& row : table) {
        if (row.state == Option::State::built) {
            known.push_back(fmt::format("--{}", row.name));
        }
    }
    const bool has_name = name.size() > 2;
    return fail(Error::Kind::usage,
                fmt::format("no option {}{}", name, has_name ? did_you_mean(name, known) : ""));
}

/// The arguments that CLI11 left over, as operands: without the `--` that ends the options. An
/// argument before it that looks like an option is an error.
Result<std::vector<std::string>> operands(std::span<const Option> table, Order order,
                                          std::vector<std::string> rest)
{
    const bool first_decides = order == Order::options_first;
    const auto end = first_decides && !rest.empty() && rest.front() != "--"
                         ? rest.begin() + 1
                         : std::find(rest.begin(), rest.end(), "--");
    const auto strange = std::find_if(rest.begin(), end, [](const std::string& word) {
        return word.size() > 1 && word.starts_with('-');
    });
    if (strange != end) {
        return no_such_option(table, *strange);
    }
    if (end != rest.end() && *end == "--" && !(first_decides && end != rest.begin())) {
        rest.erase(end);
    }
    return rest;
}

/// Parses one command line with CLI11.
class Reader {
public:
    Reader(std::span<const Option> table, Order order)
        : m_table(table)
    {
        m_app.set_help_flag();
        m_app.allow_extras();
        m_app.prefix_command(order == Order::options_first);
        for (const Option& row : table) {
            declare(row);
        }
    }

    Result<Parsed> read(Order order, std::vector<std::string> arguments)
    {
        std::reverse(arguments.begin(), arguments.end()); // CLI11 expects the reverse order
        try {
            m_app.parse(std::move(arguments));
        } catch (const CLI::ArgumentMismatch& error) {
            return wrong_count(error.what());
        } catch (const CLI::Error& error) {
            return fail(Error::Kind::usage, error.what());
        }
        Parsed parsed;
        for (const Option& row : m_table) {
            const CLI::Option& given = *m_given.at(row.name);
            if (given.count() > 0 && row.state == Option::State::reserved) {
                return fail(Error::Kind::usage,
                            fmt::format("--{} is not in this version", row.name));
            }
            for (const std::string& value :
                 row.value.empty() ? std::vector<std::string>(given.count()) : given.results()) {
                parsed.options.add(row.name, value);
            }
        }
        const std::vector<std::string> rest = m_app.remaining();
        const auto dashes = std::find(rest.begin(), rest.end(), "--");
        if (order == Order::mixed && dashes != rest.end()) {
            parsed.before_dashes = dashes - rest.begin();
        }
        TRY_ASSIGN(parsed.operands, operands(m_table, order, rest));
        return parsed;
    }

private:
    void declare(const Option& row)
    {
        CLI::Option* const option = row.value.empty()
                                        ? m_app.add_flag(declaration(row))->disable_flag_override()
                                        : m_app.add_option(declaration(row))->expected(1);
        option->allow_extra_args(false);
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        m_given[row.name] = option;
    }

    /// Such a message from CLI11 begins with the option's name.
    Error wrong_count(std::string_view message) const
    {
        for (const Option& row : m_table) {
            const std::string name = fmt::format("--{}", row.name);
            if (message.starts_with(name + ":") ||
                message.starts_with(std::string(row.name) + " ")) {
                return fail(Error::Kind::usage,
                            row.value.empty()
                                ? fmt::format("{} takes no value", name)
                                : fmt::format("{} needs a value: {} {}", name, name, row.value));
            }
        }
        return fail(Error::Kind::usage, std::string(message));
    }

    std::span<const Option> m_table;
    CLI::App m_app;
    std::map<std::string_view, CLI::Option*> m_given;
};

} // namespace

std::optional<std::string> Options::value(std::string_view name) const
{
    const auto found = std::find_if(m_given.rbegin(), m_given.rend(),
                                    [&](const Given& given) { return given.name == name; });
    return found == m_given.rend() ? std::nullopt : std::optional(found->value);
}

std::vector<std::string> Options::values(std::string_view name) const
{
    std::vector<std::string> found;
    for (const Given& given : m_given) {
        if (given.name == name) {
            found.push_back(given.value);
        }
    }
    return found;
}

void Options::add(std::string_view name, std::string value)
{
    m_given.push_back({std::string(name), std::move(value)});
}

Result<Parsed> parse_options(std::span<const Option> table, Order order,
                             const std::vector<std::string>& arguments)
{
    return Reader(table, order).read(order, arguments);
}

} // namespace gpuq::cli
