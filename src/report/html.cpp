// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/html.h"

#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace gpuq::report {
namespace {

constexpr std::string_view k_style =
#include "report/page.css.inc"
    ;

std::string_view entity(char character)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return {};
    }
}

std::string_view class_of(const Column& column)
{
    return column.align == Column::Align::right ? " class=\"right\"" : "";
}

std::string row_of(const Table& table, const std::vector<Cell>& cells)
{
    const std::string& name = cells.front().text;
    std::string row = fmt::format(
        "<tr{}><th scope=\"row\">{}</th>", name.starts_with(' ') ? " class=\"part\"" : "",
        html_text(name.substr(std::min(name.find_first_not_of(' '), name.size()))));
    for (std::size_t i = 1; i < cells.size(); ++i) {
        row += fmt::format("<td{}>{}</td>", class_of(table.columns[i]), html_text(cells[i].text));
    }
    return row + "</tr>\n";
}

} // namespace

std::string html_text(std::string_view text)
{
    std::string escaped;
    for (const char character : sanitised(text)) {
        const std::string_view name = entity(character);
        escaped += name.empty() ? std::string_view(&character, 1) : name;
    }
    return escaped;
}

std::string html_page(std::string_view title, const std::string& body, std::chrono::seconds reload)
{
    const std::string refresh =
        reload.count() == 0
            ? ""
            : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", reload.count());
    // The page's own policy: no network and no script, regardless of its content.
    return fmt::format("<!DOCTYPE html>\n"
                       "<html lang=\"en\">\n"
                       "<head>\n"
                       "<meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n"
                       "{}"
                       "<title>{}</title>\n"
                       "<style>{}</style>\n"
                       "</head>\n"
                       "<body>\n{}</body>\n"
                       "</html>\n",
                       refresh, html_text(title), k_style, body);
}

std::string html_table(const Table& table, std::string_view caption)
{
    std::string text =
        fmt::format("<table>\n<caption>{}</caption>\n<thead><tr><td></td>", html_text(caption));
    for (std::size_t i = 1; i < table.columns.size(); ++i) {
        text += fmt::format("<th scope=\"col\"{}>{}</th>", class_of(table.columns[i]),
                            html_text(table.columns[i].title));
    }
    text += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
        text += row_of(table, row);
    }
    return text + "</tbody>\n</table>\n";
}

} // namespace gpuq::report
