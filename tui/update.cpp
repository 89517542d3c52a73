// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"

#include "core/split_arguments.h"
#include "tui/keys.h"
#include "tui/typed_line.h"
#include "tui/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace gpuq::tui {
namespace {

constexpr char32_t k_tab = 9, k_ctrl_c = 3, k_ctrl_d = 4, k_ctrl_l = 12, k_ctrl_u = 21;

/// Applies one message to one model. An object only so that its parts need not pass both around.
class Update {
public:
    explicit Update(Model& model)
        : m_model(model)
    {
    }

    std::vector<Effect> take(Message message)
    {
        std::visit([this](auto& each) { on(each); }, message);
        return std::move(m_effects);
    }

private:
    void on(Resized& size) { m_model.size = size; }
    void on(Tick& tick) { m_model.now = tick.now; }
    void on(Done& done)
    {
        m_model.message = std::move(done.message);
        m_model.failed = done.failed;
        if (done.failed) {
            m_model.before_start.reset();
        }
        m_effects.emplace_back(Refresh{});
    }

    void on(PictureRead& picture_read)
    {
        m_model.whole = std::move(picture_read.picture);
        select_started();
        show_filtered();
    }

    void set_filter(std::string letters)
    {
        m_model.filter = std::move(letters);
        show_filtered();
    }

    void show_filtered()
    {
        m_model.picture = m_model.whole;
        if (!m_model.picture) {
            return;
        }
        auto& rows = m_model.picture->rows;
        auto& lines = m_model.picture->runs.rows;
        for (std::size_t i = rows.size(); i > 0 && !m_model.filter.empty(); --i) {
            const auto at = static_cast<std::ptrdiff_t>(i - 1);
            if (!passes(rows[i - 1], lines[i - 1])) {
                rows.erase(rows.begin() + at);
                lines.erase(lines.begin() + at);
            }
        }
        if (!rows.empty() && selected_run(m_model) == nullptr) {
            m_model.selected = rows.front().key;
        }
    }

    bool passes(const RunRow& run, const std::vector<report::Cell>& line) const
    {
        return is_in(run.name, m_model.filter) || is_in(run.id, m_model.filter) ||
               std::any_of(line.begin(), line.end(), [this](const report::Cell& cell) {
                   return is_in(cell.text, m_model.filter);
               });
    }

    void select_started()
    {
        if (!m_model.before_start) {
            return;
        }
        const auto& before = *m_model.before_start;
        const auto& all = m_model.whole->rows;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (std::find(before.begin(), before.end(), all[i].key) == before.end()) {
                m_model.selected = all[i].key;
                if (!passes(all[i], m_model.whole->runs.rows[i])) {
                    m_model.filter.clear();
                }
                return m_model.before_start.reset();
            }
        }
    }

    void on(DetailRead& picture_read) { m_model.detail = std::move(picture_read.detail); }

    void on(LogBytes& piece)
    {
        if (!m_model.log || m_model.log->key != piece.key || m_model.log->stream != piece.stream) {
            return;
        }
        OpenedLog& log = *m_model.log;
        log.trouble = std::move(piece.trouble);
        if (piece.anew && !piece.note.empty()) {
            log.note = std::move(piece.note);
        }
        log.behind = log.behind ? !(piece.anew && log.follow) : would_take_away(log, piece);
        if (log.behind) {
            return;
        }
        if (piece.anew) {
            log.text = LogText();
            log.skipped = log.bytes = piece.skipped;
            log.top = log.top_row = 0;
        }
        const std::size_t gone = log.text.gone();
        log.text.feed(piece.bytes);
        log.bytes += piece.bytes.size();
        log.top -= std::min(log.top, log.text.gone() - gone);
    }

    /// Whether the piece would remove lines at which the user has stopped: they are kept, and it
    /// must wait.
    static bool would_take_away(OpenedLog& log, const LogBytes& piece)
    {
        const auto& lines = log.text.lines();
        if (log.follow || (lines.size() == 1 && lines.front().empty())) {
            return false;
        }
        const auto more = std::count(piece.bytes.begin(), piece.bytes.end(), '\n');
        return piece.anew ||
               lines.size() + static_cast<std::size_t>(more) > LogText::k_most_lines + log.top;
    }

    void on(Tried& tried)
    {
        if (m_model.prompt && m_model.prompt->typed == tried.typed) {
            m_model.prompt->answer = std::move(tried.done);
        }
    }

    void on(Key& key)
    {
        m_model.message.clear();
        m_model.failed = false;
        if (key.character == k_ctrl_c) {
            m_effects.emplace_back(Quit{});
        } else if (m_model.question) {
            answer(key);
        } else if (m_model.prompt) {
            type(key);
        } else if (m_model.help) {
            const int shown = rows_of_help(m_model.size.rows);
            m_model.help_row += shown;
            m_model.help = m_model.help_row < static_cast<int>(k_keys.size()) &&
                           key.special != Special::escape && key.character != U'q';
        } else if (!on_common_key(key)) {
            m_model.log ? on_log_key(key) : on_list_key(key);
        }
    }

    void answer(const Key& key)
    {
        const Question question = *std::exchange(m_model.question, std::nullopt);
        if (key.character == U'y' || key.character == U'Y') {
            m_model.message = "...";
            m_effects.emplace_back(question.command);
        } else {
            m_model.message = "nothing done";
        }
    }

    void type(const Key& key)
    {
        Prompt& prompt = *m_model.prompt;
        if (key.special == Special::escape) {
            if (prompt.purpose == Prompt::Purpose::filter) {
                set_filter("");
            }
            return m_model.prompt.reset();
        }
        if (key.special == Special::enter) {
            return typed(*std::exchange(m_model.prompt, std::nullopt));
        }
        const std::string before = prompt.typed;
        edit(prompt, key);
        if (prompt.typed == before) {
            return;
        }
        if (prompt.purpose == Prompt::Purpose::start) {
            try_out(prompt);
        } else if (prompt.purpose == Prompt::Purpose::filter) {
            set_filter(prompt.typed);
        }
    }

    /// Does nothing while a quote is still open.
    void try_out(Prompt& prompt)
    {
        prompt.answer = {};
        auto arguments = split_arguments(prompt.typed);
        if (arguments && !arguments->empty()) {
            arguments->insert(arguments->begin(), {"run", "--detach", "--dry-run"});
            m_effects.emplace_back(Try{prompt.typed, *std::move(arguments)});
        }
    }

    void typed(const Prompt& prompt)
    {
        if (prompt.typed.empty() || prompt.purpose == Prompt::Purpose::filter) {
            return; // the filter is applied at each key
        }
        if (prompt.purpose == Prompt::Purpose::search) {
            m_model.found = prompt.typed;
            return search(true);
        }
        if (prompt.purpose == Prompt::Purpose::exempt) {
            m_model.message = "...";
            m_effects.emplace_back(
                Command{{"exempt", prompt.key_of_run, "--reason", prompt.typed}});
            return;
        }
        const auto arguments = split_arguments(prompt.typed);
        if (!arguments) {
            m_model.message = arguments.error().text;
            m_model.failed = true;
            return;
        }
        Command command;
        if (prompt.purpose == Prompt::Purpose::extend) {
            command.arguments = {"extend", prompt.key_of_run};
        } else {
            command.arguments = {"run", "--detach"};
            m_model.before_start.emplace();
            if (m_model.whole) {
                for (const RunRow& run : m_model.whole->rows) {
                    m_model.before_start->push_back(run.key);
                }
            }
        }
        command.arguments.insert(command.arguments.end(), arguments->begin(), arguments->end());
        m_model.message = "...";
        m_effects.emplace_back(std::move(command));
    }

    bool on_common_key(const Key& key)
    {
        switch (key.character) {
        case U'q':
            m_effects.emplace_back(Quit{});
            return true;
        case U'?':
            m_model.help = true;
            m_model.help_row = 0;
            return true;
        case U'r':
            m_effects.emplace_back(Refresh{});
            return true;
        case k_ctrl_l:
            m_effects.emplace_back(Redraw{});
            return true;
        case U'p':
            with_run([this](const RunRow& run) {
                m_effects.emplace_back(Command{{"logs", "--printable", run.key}, true, true});
            });
            return true;
        case U'y':
            with_run([this](const RunRow& run) {
                const std::string command =
                    fmt::format("gpuq {} {}", m_model.log ? "logs -f" : "show", run.id);
                m_effects.emplace_back(Copy{command});
                m_model.message = fmt::format("copied: {}", command);
            });
            return true;
        default:
            return false;
        }
    }

    int page() const { return std::max(m_model.size.rows / 2, 1); }

    /// How far a key moves; nothing for other keys.
    std::optional<int> step(const Key& key) const
    {
        if (key.special == Special::down || key.character == U'j') {
            return 1;
        }
        if (key.special == Special::up || key.character == U'k') {
            return -1;
        }
        if (key.special == Special::page_down || key.character == k_ctrl_d) {
            return page();
        }
        if (key.special == Special::page_up || key.character == k_ctrl_u) {
            return -page();
        }
        return std::nullopt;
    }

    void on_log_key(const Key& key)
    {
        OpenedLog& log = *m_model.log;
        if (const auto by = step(key)) {
            return scroll(log, *by);
        }
        if (key.special == Special::escape || key.character == U'l' ||
            (key.character == k_tab && log.stream == Stream::err)) {
            m_model.log.reset();
            m_effects.emplace_back(CloseLog{});
        } else if (key.special == Special::home || key.character == U'g') {
            log.follow = false;
            show_from(log, {});
        } else if (key.special == Special::end || key.character == U'G') {
            follow(log);
        } else if (key.character == U'f') {
            if (!log.follow) {
                return follow(log);
            }
            log.follow = false;
            show_from(log, last_top(log));
        } else if (key.character == U'w') {
            log.wrap = !log.wrap;
            log.top_row = 0;
        } else if (key.character == U'o' || (key.character == k_tab && log.stream == Stream::out)) {
            open_log(log.key, log.id, log.name,
                     log.stream == Stream::out ? Stream::err : Stream::out);
        } else if (key.character == U'/') {
            m_model.prompt = Prompt{Prompt::Purpose::search, "search: ", "", "", {}};
        } else if (key.character == U'n' || key.character == U'N') {
            search(key.character == U'n');
        }
    }

    /// A row of a log: the line, and the row within the wrapped line.
    struct Place {
        std::size_t line = 0, row = 0;
        // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a default <=>
        auto operator<=>(const Place&) const = default;
    };

    void scroll(OpenedLog& log, int by) const
    {
        const Place last = last_top(log);
        const Place from = log.follow ? last : Place{log.top, log.top_row};
        show_from(log, std::min(moved(log, from, by), last));
        log.follow = log.follow && by > 0;
    }

    static void show_from(OpenedLog& log, Place place)
    {
        log.top = place.line;
        log.top_row = place.row;
    }

    void follow(OpenedLog& log)
    {
        log.follow = true;
        if (log.behind) { // lines are missing: reads the log again
            m_effects.emplace_back(OpenLog{log.key, log.stream});
        }
    }

    std::size_t rows_of(OpenedLog& log, std::size_t line) const
    {
        return log.wrap ? folded(log.text.lines()[line], m_model.size.columns).size() : 1;
    }

    Place moved(OpenedLog& log, Place place, int by) const
    {
        const std::size_t count = log.text.lines().size();
        for (; by > 0; --by) {
            if (place.row + 1 < rows_of(log, place.line)) {
                ++place.row;
            } else if (place.line + 1 < count) {
                place = {place.line + 1, 0};
            }
        }
        for (; by < 0; ++by) {
            if (place.row > 0) {
                --place.row;
            } else if (place.line > 0) {
                place = {place.line - 1, rows_of(log, place.line - 1) - 1};
            }
        }
        return place;
    }

    /// The first row shown if the last line is at the bottom.
    Place last_top(OpenedLog& log) const
    {
        auto room = static_cast<std::size_t>(std::max(m_model.size.rows - 2, 1));
        const auto& lines = log.text.lines();
        std::size_t at = lines.size();
        if (at > 1 && lines.back().empty()) {
            --at; // a cursor at the beginning of a line needs no row
        }
        while (at > 0) {
            const std::size_t rows = rows_of(log, --at);
            if (rows >= room) {
                return {at, rows - room};
            }
            room -= rows;
        }
        return {};
    }

    void open_log(std::string key, std::string id, std::string name, Stream stream)
    {
        const bool wrap = !m_model.log || m_model.log->wrap;
        m_model.log.emplace();
        m_model.log->key = key;
        m_model.log->id = std::move(id);
        m_model.log->name = std::move(name);
        m_model.log->stream = stream;
        m_model.log->wrap = wrap;
        m_effects.emplace_back(OpenLog{std::move(key), stream});
    }

    void on_list_key(const Key& key)
    {
        if (const auto by = step(key)) {
            return select(static_cast<int>(selected_index()) + *by);
        }
        if (key.special == Special::home || key.character == U'g') {
            return select(0);
        }
        if (key.special == Special::end || key.character == U'G') {
            return select(static_cast<int>(rows().size()) - 1);
        }
        if (key.special == Special::escape) {
            return set_filter("");
        }
        if (key.character == U'/') {
            m_model.prompt =
                Prompt{Prompt::Purpose::filter, "only runs with: ", m_model.filter, "", {},
                       m_model.filter.size()};
            return;
        }
        if (key.special == Special::enter || key.character == U'l' || key.character == k_tab) {
            return with_run(
                [this](const RunRow& run) { open_log(run.key, run.id, run.name, Stream::out); });
        }
        if (key.character == U'+') {
            m_model.prompt = Prompt{Prompt::Purpose::start, "gpuq run --detach ", "", "", {}};
            return;
        }
        act(key.character);
    }

    void act(char32_t character)
    {
        with_run([&](const RunRow& run) {
            const std::string title = fmt::format("{} ({}), {}{}{}", run.id, run.name, run.gpus,
                                                  run.since.empty() ? "" : ", ", run.since);
            if (run.plain &&
                std::u32string_view(U"asSei").find(character) != std::u32string_view::npos) {
                m_model.message =
                    fmt::format("job {} is a plain Slurm job, and this key is for runs of "
                                "gpuq; v shows the job, x stops it",
                                run.id);
                m_model.failed = true;
                return;
            }
            switch (character) {
            case U'v':
                m_effects.emplace_back(Command{{"show", run.key}, true, true});
                return;
            case U'a':
                return run.running ? m_effects.emplace_back(Command{{"attach", run.key}, true}),
                       void()      : refuse(run, "is not running: nothing to attach to");
            case U'x':
                return run.active
                           ? ask(fmt::format("stop {} {}?", run.plain ? "job" : "run", title),
                                 {{"stop", run.key}})
                           : refuse(run, "has ended already");
            case U's':
                return run.active && run.saves
                           ? ask(fmt::format("save and stop run {}?", title),
                                 {{"stop", "--checkpoint", run.key}})
                           : refuse(run, run.active ? "can't save: see man gpuq-chain"
                                                    : "has ended already");
            case U'S':
                if (!run.running) {
                    return refuse(run, "is not running: nothing to save");
                }
                m_model.message = "...";
                m_effects.emplace_back(Command{{"save", run.key}});
                return;
            case U'e':
                if (run.active) {
                    m_model.prompt = Prompt{Prompt::Purpose::extend,
                                            fmt::format("more time for run {}: ", run.id),
                                            "",
                                            run.key,
                                            {}};
                    return;
                }
                return refuse(run, "has ended already");
            case U'i':
                if (run.active) {
                    m_model.prompt = Prompt{Prompt::Purpose::exempt,
                                            fmt::format("why run {} keeps idle GPUs: ", run.id),
                                            "",
                                            run.key,
                                            {}};
                    return;
                }
                return refuse(run, "has ended already");
            default:
                return;
            }
        });
    }

    void ask(std::string text, Command command)
    {
        m_model.question = Question{std::move(text), std::move(command)};
    }

    void refuse(const RunRow& run, std::string_view why)
    {
        m_model.message = fmt::format("run {} {}", run.id, why);
        m_model.failed = true;
    }

    template <typename Do>
    void with_run(const Do& act)
    {
        if (const RunRow* run = selected_run(m_model)) {
            act(*run);
        }
    }

    const std::vector<RunRow>& rows() const
    {
        static const std::vector<RunRow> k_none;
        return m_model.picture ? m_model.picture->rows : k_none;
    }

    std::size_t selected_index() const
    {
        const RunRow* run = selected_run(m_model);
        return run == nullptr ? 0 : static_cast<std::size_t>(run - rows().data());
    }

    void select(int index)
    {
        m_model.before_start.reset(); // the user has moved to another run
        if (!rows().empty()) {
            const int last = static_cast<int>(rows().size()) - 1;
            m_model.selected = rows()[static_cast<std::size_t>(std::clamp(index, 0, last))].key;
        }
    }

    void search(bool forward)
    {
        if (m_model.found.empty()) {
            m_model.message = "nothing to search for: / begins a search";
            return;
        }
        if (!search_log(forward)) {
            m_model.message = fmt::format("'{}' not found", m_model.found);
            m_model.failed = true;
        }
    }

    bool search_log(bool forward)
    {
        OpenedLog& log = *m_model.log;
        const auto& lines = log.text.lines();
        const std::size_t count = lines.size();
        // While following the end, the newest match comes first.
        const std::size_t from = log.follow ? (forward ? count - 1 : count) : log.top;
        for (std::size_t i = 1; i <= count; ++i) {
            const std::size_t at = (from + (forward && !log.follow ? i : 2 * count - i)) % count;
            if (is_in(text_of(lines[at]), m_model.found)) {
                log.follow = false;
                show_from(log, {at, row_with_found(log, at)});
                return true;
            }
        }
        return false;
    }

    /// The row of the wrapped line that contains the match.
    std::size_t row_with_found(OpenedLog& log, std::size_t line) const
    {
        std::size_t row = 0;
        if (log.wrap) {
            const auto parts = folded(log.text.lines()[line], m_model.size.columns);
            while (row < parts.size() && !is_in(text_of(parts[row]), m_model.found)) {
                ++row;
            }
            row = row < parts.size() ? row : 0; // the match extends over two rows
        }
        return row;
    }

    Model& m_model;
    std::vector<Effect> m_effects;
};

} // namespace

const RunRow* selected_run(const Model& model)
{
    if (!model.picture) {
        return nullptr;
    }
    const auto& rows = model.picture->rows;
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const RunRow& run) { return run.key == model.selected; });
    return found == rows.end() ? nullptr : &*found;
}

std::string run_in_detail(const Model& model)
{
    return model.log || model.help ? "" : model.selected;
}

bool is_in(std::string_view text, std::string_view sought)
{
    const auto small = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const bool exact =
        std::any_of(sought.begin(), sought.end(), [&](char c) { return small(c) != c; });
    const auto found = std::search(
        text.begin(), text.end(), sought.begin(), sought.end(),
        [&](char one, char other) { return exact ? one == other : small(one) == other; });
    return found != text.end();
}

std::vector<Effect> update(Model& model, Message message)
{
    std::vector<Effect> effects = Update(model).take(std::move(message));
    model.first_row = first_row_shown(model);
    return effects;
}

} // namespace gpuq::tui
