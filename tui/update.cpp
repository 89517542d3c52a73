// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"

#include "tui/change.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;

constexpr char32_t k_tab = 9, k_ctrl_c = 3, k_ctrl_l = 12;
constexpr auto k_toast = 8s;
constexpr std::size_t k_most_toasts = 4;
/// Values kept of the curves of a run that is not selected: enough for the list.
constexpr std::size_t k_thin = 64;

/// Keeps the part of a run's details that the list shows.
void thin_out(Detail& detail)
{
    detail.facts.clear();
    detail.events.clear();
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
        std::visit([this](auto& each) { on(each); }, message);
        settle(selected);
        return std::move(m_effects);
    }

private:
    Change change() { return {m_model, m_effects}; }

    void on(Resized& size) { m_model.size = size; }
    void on(Tick& tick)
    {
        m_model.now = tick.now;
        std::erase_if(m_model.toasts,
                      [&](const Toast& toast) { return toast.until <= m_model.now; });
    }
    void on(Mouse& mouse)
    {
        m_model.message.clear();
        on_mouse(change(), mouse);
    }
    void on(Done& done)
    {
        m_model.message = std::move(done.message);
        m_model.failed = done.failed;
        if (done.failed) {
            m_model.before_start.reset();
        }
        m_effects.emplace_back(Refresh{});
    }
    void on(ComparisonRead& read)
    {
        if (m_model.comparison && m_model.comparison->keys == read.comparison.keys) {
            m_model.comparison = std::move(read.comparison);
        }
    }
    void on(DetailRead& read)
    {
        Detail& detail = read.detail;
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
    void on(Tried& tried)
    {
        if (m_model.prompt && m_model.prompt->typed == tried.typed) {
            m_model.prompt->answer = std::move(tried.done);
        }
    }
    void on(Completed& completed) { on_completed(change(), completed); }

    void on(PictureRead& read)
    {
        if (m_model.has_picture) {
            notice_changes(read.picture);
        }
        m_model.picture = std::move(read.picture);
        m_model.has_picture = true;
        std::unordered_set<std::string_view> keys;
        for (const RunRow& run : m_model.picture.runs) {
            keys.insert(run.key);
        }
        std::erase_if(m_model.marks, [&](const std::string& key) { return !keys.contains(key); });
        std::erase_if(m_model.details, [&](const auto& one) { return !keys.contains(one.first); });
        select_started();
    }

    /// Shows and reports the runs that have started or ended since the last picture.
    void notice_changes(const Picture& next)
    {
        std::unordered_map<std::string_view, const RunRow*> before;
        for (const RunRow& run : m_model.picture.runs) {
            before.emplace(run.key, &run);
        }
        for (const RunRow& run : next.runs) {
            const auto old = before.find(run.key);
            if (old == before.end()) {
                continue;
            }
            const RunRow& was = *old->second;
            const std::string name =
                fmt::format("{} {} ({})", run.plain ? "job" : "run", run.id, run.name);
            if (was.active && !run.active) {
                notice(name + ": " + run.state, run.mark);
            } else if (!was.running && run.running) {
                notice(name + " has started", run.mark);
            } else if (was.mark != RunMark::attention && run.mark == RunMark::attention) {
                notice(name + " needs attention", run.mark);
            }
        }
    }

    void notice(std::string text, RunMark mark)
    {
        m_effects.emplace_back(Notify{text});
        m_model.toasts.push_back({std::move(text), mark, m_model.now + k_toast});
        if (m_model.toasts.size() > k_most_toasts) {
            m_model.toasts.erase(m_model.toasts.begin());
        }
    }

    void select_started()
    {
        if (!m_model.before_start) {
            return;
        }
        const auto& before = *m_model.before_start;
        for (const RunRow& run : m_model.picture.runs) {
            if (std::find(before.begin(), before.end(), run.key) == before.end()) {
                m_model.selected = run.key;
                if (!passes(run, m_model.list.filter)) {
                    m_model.list.filter.clear();
                }
                return m_model.before_start.reset();
            }
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
            on_prompt_key(change(), key);
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
            m_model.message = "...";
            for (Command& command : question.commands) {
                m_effects.emplace_back(std::move(command));
            }
        } else {
            m_model.message = "nothing done";
        }
    }

    void turn_help_page(const Key& key)
    {
        const int shown = rows_of_help(m_model.size.rows);
        const auto place = where(m_model);
        const auto count = std::count_if(k_keys.begin(), k_keys.end(), [&](const KeyRow& row) {
            return (row.where & place) != 0U;
        });
        m_model.help_row += shown;
        m_model.help = m_model.help_row < static_cast<int>(count) &&
                       key.special != Special::escape && key.character != U'q';
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
        default:
            return !m_model.comparison && (on_focus_key(key) || on_start_key(key));
        }
    }

    bool on_start_key(const Key& key)
    {
        if (key.character == U'+') {
            begin_prompt(change(), Prompt::Purpose::start, "gpuq run --detach ");
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
            if (m_model.full && m_model.focus == Panel::run) {
                on_run_key(change(), Key{Special::none, back ? U'[' : U']'});
                return true;
            }
            const int next = (static_cast<int>(m_model.focus) + (back ? 2 : 1)) % 3;
            focus(static_cast<Panel>(next));
            return true;
        }
        if (key.character == U'F') {
            m_model.full = !m_model.full;
            m_model.tab_in_panel = m_model.tab;
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
        if (m_model.full && panel != m_model.focus) {
            close_run(change());
        }
        m_model.focus = panel;
    }

    void on_panel_key(const Key& key)
    {
        if (m_model.comparison) {
            return on_comparison_key(change(), key);
        }
        if (on_action_key(change(), key)) {
            return;
        }
        m_model.focus == Panel::gpus   ? on_gpus_key(change(), key)
        : m_model.focus == Panel::runs ? on_runs_key(change(), key)
                                       : on_run_key(change(), key);
    }

    /// Values that follow from others: the list, the selection, the open log.
    void settle(const std::string& selected_before)
    {
        m_model.shown = listed_runs(m_model);
        if (!m_model.shown.empty() && selected_run(m_model) == nullptr) {
            m_model.selected = m_model.picture.runs[m_model.shown.front()].key;
        }
        if (m_model.selected != selected_before) {
            m_model.scroll = 0;
            m_model.curve = 0;
            m_model.chart = {};
            if (const auto old = m_model.details.find(selected_before);
                old != m_model.details.end()) {
                thin_out(old->second);
            }
        }
        m_model.list.first_row = first_row_shown(m_model);
        settle_log();
    }

    void settle_log()
    {
        const RunRow* const run = shows_log(m_model) ? selected_run(m_model) : nullptr;
        if (run == nullptr) {
            if (std::exchange(m_model.log, std::nullopt)) {
                m_effects.emplace_back(CloseLog{});
            }
        } else if (!m_model.log || m_model.log->key != run->key) {
            const bool wrap = !m_model.log || m_model.log->wrap;
            m_model.log.emplace();
            m_model.log->key = run->key;
            m_model.log->id = run->id;
            m_model.log->name = run->name;
            m_model.log->wrap = wrap;
            m_effects.emplace_back(OpenLog{run->key, Stream::out});
        }
    }

    Model& m_model;
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

std::vector<std::string> runs_in_detail(const Model& model)
{
    std::vector<std::string> keys;
    const RunRow* const run = selected_run(model);
    if (run == nullptr || model.help || model.comparison || (model.full && model.tab == Tab::log)) {
        return keys;
    }
    keys.push_back(run->key);
    const Areas areas = areas_of(model);
    const auto rows = static_cast<std::size_t>(areas.runs.height > 0 ? rows_for_runs(model) : 0);
    for (std::size_t i = model.list.first_row; i < model.shown.size() && keys.size() <= rows; ++i) {
        const RunRow& other = model.picture.runs[model.shown[i]];
        if (other.key != run->key && !other.plain) {
            keys.push_back(other.key);
        }
    }
    return keys;
}

bool shows_log(const Model& model)
{
    return model.tab == Tab::log && !model.comparison &&
           (areas_of(model).run.height > 0 || (areas_of(model).tiny && model.focus == Panel::run));
}

std::vector<Effect> update(Model& model, Message message)
{
    return Update(model).take(std::move(message));
}

} // namespace gpuq::tui
