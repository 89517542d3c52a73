// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"

#include "tui/board_view.h"
#include "tui/change.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace gpuq::tui {
namespace {

constexpr char32_t k_tab = 9, k_ctrl_c = 3, k_ctrl_l = 12, k_ctrl_r = 18;
/// Values kept of the curves of a run that is not selected: enough for the list.
constexpr std::size_t k_thin = 64;

/// Keeps the part of a run's details that the list shows.
void thin_out(Detail& detail)
{
    detail.facts.clear();
    detail.events.clear();
    detail.options.clear();
    std::vector<Curve> kept;
    for (const bool of_training : {true, false}) {
        const auto found =
            std::find_if(detail.curves.begin(), detail.curves.end(), [&](const Curve& curve) {
                return curve.of_training == of_training && (of_training || curve.unit == "%");
            });
        if (found == detail.curves.end()) {
            continue;
        }
        Curve thin{found->title, found->unit, {}, of_training};
        const std::size_t every = found->dots.size() / k_thin + 1;
        for (std::size_t i = 0; i < found->dots.size(); i += every) {
            thin.dots.push_back(found->dots[i]);
        }
        kept.push_back(std::move(thin));
    }
    detail.curves = std::move(kept);
}

/// Whether a log is visible, in the run's panel or below the list.
bool has_log(const Model& model)
{
    return shows_log(model) || (!model.comparison && areas_of(model).lower.height > 0);
}

/// Applies one message to one model. An object only so that its parts need not pass both around.
class Update {
public:
    explicit Update(Model& model)
        : m_model(model)
    {
    }

    std::vector<Effect> take(Message message)
    {
        const std::string selected = m_model.selected;
        const std::string displaced = m_model.list.displaced;
        std::visit([this](auto& each) { on(each); }, message);
        if (!std::holds_alternative<Tick>(message)) { // the list does not depend on the time
            settle(selected);
        }
        if (is_act(message) && m_model.list.displaced == displaced && !is_filtering()) {
            m_model.list.displaced.clear(); // the user has accepted the run that is selected now
        }
        m_model.commands.running += static_cast<std::size_t>(
            std::count_if(m_effects.begin(), m_effects.end(),
                          [](auto& one) { return std::holds_alternative<Command>(one); }));
        return std::move(m_effects);
    }

private:
    Change change() { return {m_model, m_effects}; }

    static bool is_act(const Message& message)
    {
        const auto* const mouse = std::get_if<Mouse>(&message);
        return std::holds_alternative<Key>(message) ||
               (mouse != nullptr && mouse->action != Mouse::Action::move);
    }
    bool is_filtering() const
    {
        return m_model.prompt && m_model.prompt->purpose == Prompt::Purpose::filter;
    }

    void on(Resized& size) { m_model.size = size; }
    void on(Tick& tick)
    {
        m_model.now = tick.now;
        std::erase_if(m_model.toasts,
                      [&](const Toast& toast) { return toast.until <= m_model.now; });
    }
    void on(Mouse& mouse)
    {
        if (mouse.action != Mouse::Action::move) {
            put_answer_away(m_model);
            m_model.commands.last.reset();
        }
        on_mouse(change(), mouse);
    }
    void on(Paste& paste) { on_paste(change(), paste); }
    void on(Done& done) { on_done(change(), done); }
    void on(ComparisonRead& read)
    {
        if (m_model.comparison && m_model.comparison->keys == read.comparison.keys) {
            m_model.comparison = std::move(read.comparison);
            m_model.comparison->at = m_model.now;
        }
    }
    void on(DetailRead& read)
    {
        Detail& detail = read.detail;
        if (auto& form = m_model.commands.form; form && form->key_of_run == detail.key) {
            form->before = detail.options;
        }
        if (detail.key != m_model.selected) {
            thin_out(detail);
        }
        m_model.details.insert_or_assign(detail.key, std::move(detail));
    }
    void on(LogBytes& piece)
    {
        if (m_model.log && m_model.log->key == piece.key && m_model.log->stream == piece.stream) {
            take_bytes(*m_model.log, piece);
        }
    }
    void on(Tried& tried) { on_tried(change(), tried); }
    void on(Completed& completed) { on_completed(change(), completed); }

    void on(PictureRead& read)
    {
        if (!read.picture.listed) {
            read.picture.runs = m_model.picture.runs; // as last known
        }
        if (m_model.has_picture) {
            notice_changes(change(), read.picture);
        }
        keep_selected(m_model, read.picture);
        m_before = std::exchange(m_model.picture, std::move(read.picture));
        m_model.has_picture = true;
        std::unordered_set<std::string_view> keys;
        for (const RunRow& run : m_model.picture.runs) {
            keys.insert(run.key);
        }
        std::erase_if(m_model.marks, [&](const std::string& key) { return !keys.contains(key); });
        std::erase_if(m_model.details, [&](const auto& one) {
            // Those of tries belong to their sweep.
            return !keys.contains(std::string_view(one.first).substr(0, one.first.find('/')));
        });
        select_started(m_model);
    }

    void on(Key& key)
    {
        m_model.pointed_gpu.reset();
        m_model.commands.last.reset();
        if (key.special == Special::escape) {
            m_model.answer = {}; // the user has read it
        }
        put_answer_away(m_model);
        if (m_model.commands.form && !m_model.question) {
            on_form_key(change(), key);
        } else if (m_model.prompt && !m_model.question) {
            on_prompt_key(change(), key);
        } else if (m_model.question) {
            answer(key);
        } else if (key.character == k_ctrl_c) {
            m_effects.emplace_back(Quit{});
        } else if (m_model.help) {
            turn_help_page(key);
        } else if (!on_common_key(key)) {
            on_panel_key(key);
        }
    }

    void answer(const Key& key)
    {
        Question question = *std::exchange(m_model.question, std::nullopt);
        if (key.character == U'y' || key.character == U'Y') {
            m_model.answer.message = "...";
            for (Command& command : question.commands) {
                m_effects.emplace_back(std::move(command));
            }
        } else {
            m_model.answer.message = "nothing done";
        }
    }

    void turn_help_page(const Key& key)
    {
        const int shown = rows_of_help(m_model.size.rows);
        const auto place = where(m_model);
        const auto count = std::count_if(k_keys.begin(), k_keys.end(), [&](const KeyRow& row) {
            return (row.where & place) != 0U;
        });
        *m_model.help += shown;
        if (*m_model.help >= count || key.special == Special::escape || key.character == U'q') {
            m_model.help.reset();
        }
    }

    bool on_common_key(const Key& key)
    {
        switch (key.character) {
        case U'q':
            m_effects.emplace_back(Quit{});
            return true;
        case U'?':
            m_model.help = 0;
            return true;
        case U'r':
        case k_ctrl_r:
            m_effects.emplace_back(Refresh{Anew::always});
            return true;
        case k_ctrl_l:
            m_effects.emplace_back(Redraw{});
            return true;
        default:
            return !m_model.comparison && (on_focus_key(key) || on_start_key(key));
        }
    }

    bool on_start_key(const Key& key)
    {
        if (key.character == U'+') {
            open_form(change(), "start a run");
            return true;
        }
        if (key.character == U'/' && !(m_model.log && (where(m_model) & k_in_logs) != 0)) {
            focus(Panel::runs);
            begin_prompt(change(), Prompt::Purpose::filter,
                         "only runs with: ", m_model.list.filter);
            return true;
        }
        if (key.character == U':') {
            begin_prompt(change(), Prompt::Purpose::command, ":gpuq ");
            return true;
        }
        return false;
    }

    bool on_focus_key(const Key& key)
    {
        const bool back = key.special == Special::back_tab;
        if (key.character == k_tab || back) {
            if (m_model.panels.full && m_model.panels.focus == Panel::run) {
                on_run_key(change(), Key{Special::none, back ? U'[' : U']'});
                return true;
            }
            const int next = (static_cast<int>(m_model.panels.focus) + (back ? 2 : 1)) % 3;
            focus(static_cast<Panel>(next));
            return true;
        }
        if (key.character == U'F') {
            m_model.panels.full = !m_model.panels.full;
            m_model.panels.tab_in_panel = m_model.panels.tab;
            return true;
        }
        if (key.character >= U'1' && key.character <= U'3') {
            focus(static_cast<Panel>(key.character - U'1'));
            return true;
        }
        return false;
    }

    void focus(Panel panel)
    {
        if (m_model.panels.full && panel != m_model.panels.focus) {
            close_run(change());
        }
        m_model.panels.focus = panel;
    }

    void on_panel_key(const Key& key)
    {
        if (m_model.comparison) {
            return on_comparison_key(change(), key);
        }
        if (on_action_key(change(), key)) {
            return;
        }
        m_model.panels.focus == Panel::gpus   ? on_gpus_key(change(), key)
        : m_model.panels.focus == Panel::runs ? on_runs_key(change(), key)
                                              : on_run_key(change(), key);
    }

    /// Values that follow from others: the list, the selection, the open log.
    void settle(const std::string& selected_before)
    {
        const std::vector<std::size_t> shown = std::exchange(m_model.shown, listed_runs(m_model));
        settle_selection(m_model, (m_before ? *m_before : m_model.picture).runs, shown);
        if (m_model.selected != selected_before) {
            m_model.panels.scroll = 0;
            m_model.charts.selected = 0;
            m_model.charts.view = {};
            if (const auto old = m_model.details.find(selected_before);
                old != m_model.details.end()) {
                thin_out(old->second);
            }
        }
        m_model.list.first_row = first_row_shown(m_model);
        if (m_model.selected != selected_before) {
            m_model.board = {};
        }
        sort_tries();
        m_model.board.first_row = first_try_shown(m_model);
        settle_log();
    }

    /// Only after a change: there may be many.
    void sort_tries()
    {
        const RunRow* const run = selected_run(m_model);
        const auto sweep = run == nullptr ? nullptr : run->sweep;
        BoardView& board = m_model.board;
        if (board.ordered != sweep || sweep == nullptr) {
            board.order = ordered_tries(m_model);
            board.ordered = sweep;
        }
    }

    void settle_log()
    {
        const RunRow* const run = has_log(m_model) ? selected_run(m_model) : nullptr;
        const TryRow* const entry = run == nullptr ? nullptr : selected_try(m_model);
        if (run == nullptr || (run->sweep && entry == nullptr)) {
            if (m_model.log) {
                m_model.closed_log = std::exchange(m_model.log, std::nullopt);
                m_effects.emplace_back(CloseLog{});
            }
        } else if (entry != nullptr) {
            OpenedLog log;
            log.key = key_of_try(m_model, entry->number);
            log.id = fmt::format("{}/{}", run->id, entry->number);
            log.title = fmt::format("try {}/{}", run->name, entry->number);
            log.name = values_text(*run->sweep, *entry);
            log.is_joint = true;
            open_log(std::move(log));
        } else {
            OpenedLog log;
            log.key = run->key;
            log.id = run->id;
            log.title = (run->plain ? "job " : "run ") + run->id;
            log.name = run->name;
            open_log(std::move(log));
        }
    }

    void open_log(OpenedLog log)
    {
        if (m_model.log && m_model.log->key == log.key) { // a run gets its id when it is submitted
            m_model.log->id = std::move(log.id);
            m_model.log->title = std::move(log.title);
            return;
        }
        auto& closed = m_model.closed_log;
        if (closed && closed->key == log.key) {
            log = *std::exchange(closed, std::nullopt);
        } else {
            const OpenedLog* const last = m_model.log ? &*m_model.log : closed ? &*closed : nullptr;
            log.wrap = last == nullptr || last->wrap;
            log.with_times = last != nullptr && last->with_times;
        }
        m_effects.emplace_back(OpenLog{log.key, log.stream});
        m_model.log = std::move(log);
    }

    Model& m_model;
    std::optional<Picture> m_before; ///< if it has been replaced
    std::vector<Effect> m_effects;
};

} // namespace

const RunRow* selected_run(const Model& model)
{
    const auto& runs = model.picture.runs;
    const auto found = std::find_if(model.shown.begin(), model.shown.end(), [&](std::size_t at) {
        return at < runs.size() && runs[at].key == model.selected;
    });
    return found == model.shown.end() ? nullptr : &runs[*found];
}

const Detail* selected_detail(const Model& model)
{
    const auto found = model.details.find(model.selected);
    return found == model.details.end() ? nullptr : &found->second;
}

const TryRow* selected_try(const Model& model)
{
    const RunRow* const run = selected_run(model);
    const auto& order = model.board.order;
    const std::size_t place = place_of_try(model);
    return run == nullptr || !run->sweep || place >= order.size()
               ? nullptr
               : &run->sweep->tries[order[place]];
}

std::string key_of_try(const Model& model, std::size_t number)
{
    return fmt::format("{}/{}", model.selected, number);
}

std::vector<std::string> runs_in_detail(const Model& model)
{
    std::vector<std::string> keys;
    const RunRow* const run = selected_run(model);
    if (run == nullptr || model.help || model.comparison ||
        (model.panels.full && shows_log(model))) {
        return keys;
    }
    if (const TryRow* const entry = selected_try(model); entry != nullptr && shows_board(model)) {
        keys.push_back(key_of_try(model, entry->number));
        for (const std::size_t number : tries_shown(model)) {
            const bool has_log = run->sweep->tries[number - 1].mark != RunMark::waiting;
            if (number != entry->number && has_log) {
                keys.push_back(key_of_try(model, number));
            }
        }
    } else if (!run->sweep) {
        keys.push_back(run->key);
    }
    std::set<std::string_view> known{run->key};
    const auto add = [&](const std::vector<std::size_t>& runs) {
        for (const std::size_t at : runs) {
            const RunRow& other = model.picture.runs[at];
            if (!other.plain && !other.sweep && known.insert(other.key).second) {
                keys.push_back(other.key);
            }
        }
    };
    if (areas_of(model).runs.height > 0) {
        add(runs_on_screen(model));
        add(runs_to_sort(model));
    }
    return keys;
}

namespace {

/// Whether the panel of the run is visible, not covered by a comparison.
bool shows_run(const Model& model)
{
    const Areas areas = areas_of(model);
    return !model.comparison &&
           (areas.run.height > 0 || (areas.tiny && model.panels.focus == Panel::run));
}

} // namespace

bool shows_board(const Model& model)
{
    const RunRow* const run = selected_run(model);
    return run != nullptr && run->sweep && !model.board.log && shows_run(model);
}

bool shows_log(const Model& model)
{
    const RunRow* const run = selected_run(model);
    const bool is_wanted =
        run != nullptr && run->sweep ? model.board.log : model.panels.tab == Tab::log;
    return is_wanted && shows_run(model);
}

std::vector<Effect> update(Model& model, Message message)
{
    return Update(model).take(std::move(message));
}

} // namespace gpuq::tui
