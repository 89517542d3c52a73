// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/notebook.h"

#include "core/layout.h"
#include "core/number.h"
#include "core/strings.h"
#include "runs/evidence.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace gpuq {
namespace {

using nlohmann::json;

/// Executed by Jupyter's own Python interpreter.
constexpr std::string_view k_config =
#include "runs/notebook_config.py.inc"
    ;

/// A script with the arguments PROGRAM CONFIGURATION.
constexpr const char* k_checked = R"sh([ -r "$1" ] || {
    echo "gpuq: notebook: the container does not see $1: bind the state directory in it (container, man gpuq)" >&2
    exit 1
}
exec "$0" "--config=$1")sh";

constexpr std::string_view k_digits = "0123456789abcdef";
constexpr std::size_t k_most_runs = 500; ///< that are searched for a notebook that has ended
constexpr std::size_t k_most_kernels = 100;
constexpr std::string_view k_line = "NOTEBOOK";

struct PageRow {
    NotebookPage page;
    std::string_view word, path, program;
};
constexpr std::array<PageRow, 3> k_pages = {
    {{NotebookPage::usual, "usual", "/tree", "jupyter-notebook"},
     // / redirects to the page that the configuration chooses, with the token
     {NotebookPage::classic, "classic", "/", "jupyter-notebook"},
     {NotebookPage::lab, "lab", "/lab", "jupyter-lab"}}};

const PageRow& row_of(NotebookPage page)
{
    return k_pages[static_cast<std::size_t>(page)];
}

bool is_hexadecimal(std::string_view text)
{
    return text.find_first_not_of(k_digits) == std::string_view::npos;
}

} // namespace

std::string notebook_json(const RunKey& key)
{
    return layout::run_dir(key) + "/notebook.json";
}

std::string kernels_json(const RunKey& key)
{
    return layout::run_dir(key) + "/kernels.json";
}

std::string to_json(const Notebook& notebook)
{
    return json{{"schema", 1},
                {"directory", notebook.directory},
                {"page", row_of(notebook.page).word},
                {"idle_seconds", notebook.idle.count()},
                {"supervisor", notebook.supervisor}}
               .dump(-1, ' ', false, json::error_handler_t::replace) +
           "\n";
}

Result<Notebook> notebook_from_json(std::string_view text)
{
    try {
        const json document = json::parse(text);
        const auto word = document.at("page").get<std::string>();
        const auto row = std::find_if(k_pages.begin(), k_pages.end(),
                                      [&](const PageRow& each) { return each.word == word; });
        if (document.at("schema") == 1 && row != k_pages.end()) {
            return Notebook{document.at("directory").get<std::string>(), row->page,
                            std::chrono::seconds(document.at("idle_seconds").get<std::int64_t>()),
                            document.at("supervisor").get<std::string>()};
        }
    } catch (const json::exception&) {
        // reported below
    }
    return fail(Error::Kind::usage, "notebook.json: not the record of a notebook");
}

std::optional<Notebook> read_notebook(Store& store, const RunKey& key)
{
    const auto text = store.read(notebook_json(key));
    auto notebook = text ? notebook_from_json(*text) : Result<Notebook>(text.error());
    return notebook ? std::optional(*std::move(notebook)) : std::nullopt;
}

std::vector<NotebookKernel> kernels_from_json(std::string_view text)
{
    std::vector<NotebookKernel> kernels;
    try {
        const json document = json::parse(text);
        if (document.at("schema") != 1) {
            return {};
        }
        for (const json& each : document.at("kernels")) {
            if (kernels.size() < k_most_kernels) {
                kernels.push_back(
                    {each.at("path").get<std::string>(), each.at("name").get<std::string>()});
            }
        }
    } catch (const json::exception&) {
        return {};
    }
    return kernels;
}

std::string notebook_note_json(const RunKey& key)
{
    return layout::run_dir(key) + "/notebook_note.json";
}

std::string notebook_note_from_json(std::string_view text)
{
    const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto found = document.is_object() && document.value("schema", json()) == 1
                           ? document.find("text")
                           : document.end();
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::string> notebook_gate_in(std::string_view place, LinkNumber link)
{
    constexpr std::size_t k_longest = 100;
    if (place.ends_with('\n')) {
        place.remove_suffix(1);
    }
    const auto fields = split(place, " ");
    const bool is_gate = fields.size() == 2 && fields[0] == fmt::format("{}", link.value) &&
                         !fields[1].empty() && fields[1].size() <= k_longest;
    return is_gate ? std::optional(std::string(fields[1])) : std::nullopt;
}

bool is_notebook_token(std::string_view text)
{
    return text.size() == k_notebook_token_digits && is_hexadecimal(text);
}

std::vector<std::string> notebook_program(const std::string& state_dir, const RunKey& key,
                                          NotebookPage page, NotebookPlace place)
{
    const std::string program(row_of(page).program);
    std::string config =
        fmt::format("{}/{}", state_dir, layout::connect_file(key, k_notebook_config));
    return place == NotebookPlace::node
               ? std::vector{program, "--config=" + config}
               : std::vector<std::string>{"sh", "-c", k_checked, program, std::move(config)};
}

std::string jupyter_in(const std::vector<std::string>& program)
{
    const auto found = std::find_if(program.begin(), program.end(), [](const std::string& word) {
        return word.starts_with("jupyter-");
    });
    return found == program.end() ? "jupyter" : *found;
}

Result<void> write_notebook(Store& store, const RunKey& key, const Notebook& notebook,
                            const std::string& token)
{
    TRY(store.write(notebook_json(key), to_json(notebook)));
    TRY(store.write(layout::connect_file(key, k_notebook_token), token));
    return store.write(layout::connect_file(key, k_notebook_config), k_config);
}

Result<NotebooksOf> find_notebooks(Store& store, const std::string& directory)
{
    NotebooksOf found;
    const auto is_of_directory = [&](const RunKey& key) {
        const auto notebook = read_notebook(store, key);
        return notebook && notebook->directory == directory;
    };
    TRY_ASSIGN(const std::vector<RunKey> active, active_runs(store));
    for (const RunKey& key : active) {
        if (is_of_directory(key) && !read_ending(store, key)) {
            found.active.push_back(key);
        }
    }
    if (!found.active.empty()) {
        return found;
    }
    TRY_ASSIGN(const std::vector<RunKey> all, all_runs(store));
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), k_most_runs));
    const auto last = std::find_if(all.begin(), end, is_of_directory);
    if (last != end) {
        found.ended = *last;
    }
    return found;
}

std::string line_of(const NotebookAddress& address)
{
    return fmt::format("{} {} {} {} {}\n", k_line, address.key, address.job, address.token,
                       address.page);
}

std::optional<NotebookAddress> notebook_address_from(std::string_view line)
{
    const auto fields = split(line, " ");
    const auto is_page = [&](const PageRow& row) { return row.path == fields[4]; };
    if (fields.size() != 5 || fields[0] != k_line || !RunKey::parse(std::string(fields[1])) ||
        !is_notebook_token(fields[3]) || std::none_of(k_pages.begin(), k_pages.end(), is_page)) {
        return std::nullopt;
    }
    const auto job = whole_number(std::string(fields[2]));
    if (!job || *job > std::numeric_limits<std::uint32_t>::max()) {
        return std::nullopt;
    }
    return NotebookAddress{std::string(fields[1]), static_cast<std::uint32_t>(*job),
                           std::string(fields[3]), std::string(fields[4])};
}

std::string_view path_of(NotebookPage page)
{
    return row_of(page).path;
}

} // namespace gpuq
