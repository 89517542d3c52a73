// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/gpu_panel.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace gpuq::tui {
namespace {

constexpr std::size_t k_least_id = 4, k_most_id = 8;
constexpr int k_gap = 2;

/// How the GPUs are drawn.
enum class Form { cells, letters, counts };

/// The place of a GPU in the panel.
struct Spot {
    int line = 0, column = 0, width = 0;
    std::size_t gpu = 0;
};

std::string count_text(const std::optional<int>& count)
{
    return count ? std::to_string(*count) : "?";
}

/// Draws the GPUs of one picture as lines. An object so that its parts need not pass it around.
class GpuText {
public:
    GpuText(const Model& model, int width, int most)
        : m_picture(model.picture)
        , m_theme(model.theme)
        , m_now(model.now)
        , m_width(std::max(width, 1))
    {
        for (const GpuModel& group : m_picture.gpus) {
            m_label = std::max(m_label, static_cast<int>(cells(label(group))));
            for (const GpuNode& node : group.nodes) {
                m_name = std::max(m_name, static_cast<int>(cells(sanitised(node.name))));
                m_most = std::max(m_most, static_cast<int>(node.gpus.size()));
            }
        }
        std::size_t id = k_least_id;
        for (const Holder& holder : m_picture.holders) {
            id = holder.mine ? std::max(id, holder.id.size()) : id;
        }
        for (const GpuModel& group : m_picture.gpus) {
            for (const GpuNode& node : group.nodes) {
                for (const Gpu& gpu : node.gpus) {
                    m_levels = gpu.busy || gpu.memory ? 2 : m_levels;
                }
            }
        }
        m_cell = static_cast<int>(std::min(id, k_most_id)) + m_levels;
        m_form = fits(Form::cells, most)     ? Form::cells
                 : fits(Form::letters, most) ? Form::letters
                                             : Form::counts;
    }

    Form form() const { return m_form; }

    int count() const { return count(m_form); }

    /// The lines and places of all GPUs; a drawing of counts has no places.
    std::vector<Line> lines(std::vector<Spot>& spots) const
    {
        std::vector<Line> all;
        std::size_t gpu = 0;
        for (const GpuModel& group : m_picture.gpus) {
            if (m_form == Form::counts) {
                all.push_back(counts(group));
                continue;
            }
            const int across = blocks_across(m_form);
            int column = 0;
            for (std::size_t i = 0; i < group.nodes.size(); ++i) {
                if (static_cast<int>(i) % across == 0) {
                    all.push_back({{fmt::format("{:<{}}", "", i == 0 ? 0 : m_label + k_gap), {}}});
                    if (i == 0) {
                        all.back() = first(group);
                    }
                    column = m_label + k_gap;
                }
                add_node(all.back(), group.nodes[i], column, static_cast<int>(all.size()) - 1, gpu,
                         spots);
                column += block(m_form);
            }
            if (group.nodes.empty()) {
                all.push_back(first(group));
            }
        }
        return all;
    }

private:
    int gpu_width(Form form) const { return form == Form::cells ? m_cell + 1 : 1; }
    int block(Form form) const { return m_name + 1 + m_most * gpu_width(form) + k_gap; }
    int blocks_across(Form form) const
    {
        return std::max(1, (m_width - m_label - k_gap) / std::max(block(form), 1));
    }

    int count(Form form) const
    {
        int lines = 0;
        for (const GpuModel& group : m_picture.gpus) {
            const int nodes = std::max(static_cast<int>(group.nodes.size()), 1);
            const int across = blocks_across(form);
            lines += form == Form::counts ? 1 : (nodes + across - 1) / across;
        }
        return std::max(lines, 1);
    }

    bool fits(Form form, int most) const
    {
        return m_label + k_gap + block(form) - k_gap <= m_width && count(form) <= most;
    }

    std::string label(const GpuModel& group) const
    {
        std::string name = sanitised(group.name.empty() ? "GPU" : group.name);
        const auto same = [&](const GpuModel& other) { return other.name == group.name; };
        if (std::count_if(m_picture.gpus.begin(), m_picture.gpus.end(), same) > 1) {
            name += fmt::format(" ({})", sanitised(group.queues));
        }
        std::string text =
            fmt::format("{} {} of {} free", name, count_text(group.free), group.total);
        text += group.shares.empty() ? "" : fmt::format(", {}", sanitised(group.shares));
        if (group.free.value_or(0) > 0 || !group.next) {
            return text;
        }
        return fmt::format("{}, next {}", text, clock_text(*group.next, m_now));
    }

    Line first(const GpuModel& group) const
    {
        Style style = group.free.value_or(0) > 0 ? coloured(k_green) : Style{};
        style.bold = true;
        return {{fmt::format("{:<{}}", label(group), m_label + k_gap), style}};
    }

    /// A number per state, and a bar of their shares in the rest of the line.
    Line counts(const GpuModel& group) const
    {
        Line line = first(group);
        const auto add = [&](Gpu::State state, const char* name, std::optional<int> count) {
            if (count.value_or(1) > 0) {
                line.push_back({fmt::format("{} {}  ", name, count_text(count)), style_of(state)});
            }
        };
        add(Gpu::State::mine, "mine", group.mine);
        add(Gpu::State::others, "others", group.others);
        add(Gpu::State::reserved, "blocked", group.reserved);
        add(Gpu::State::down, "down", group.down);
        const int room = m_width - static_cast<int>(cells(text_of(line)));
        if (group.total > 0 && room >= 10) {
            const auto part = [&](Gpu::State state, std::optional<int> count) {
                const int width = count.value_or(0) * room / group.total;
                std::string text;
                for (int i = 0; i < width; ++i) {
                    text += m_theme.ascii               ? std::string(letter(state))
                            : state == Gpu::State::free ? "░"
                                                        : "█";
                }
                line.push_back({text, style_of(state)});
            };
            part(Gpu::State::mine, group.mine);
            part(Gpu::State::others, group.others);
            part(Gpu::State::free, group.free);
            part(Gpu::State::reserved, group.reserved);
            part(Gpu::State::down, group.down);
        }
        return line;
    }

    void add_node(Line& line, const GpuNode& node, int column, int row, std::size_t& gpu,
                  std::vector<Spot>& spots) const
    {
        const std::string name = sanitised(node.name);
        line.push_back(
            {name + std::string(static_cast<std::size_t>(m_name) + 1 - cells(name), ' '), dim()});
        column += m_name + 1;
        for (const Gpu& one : node.gpus) {
            const int width = gpu_width(m_form) - (m_form == Form::cells ? 1 : 0);
            spots.push_back({row, column, width, gpu++});
            m_form == Form::cells ? add_cell(line, one) : add_letter(line, one);
            column += gpu_width(m_form);
        }
        const auto missing = static_cast<std::size_t>(m_most) - node.gpus.size();
        line.push_back(
            {std::string(missing * static_cast<std::size_t>(gpu_width(m_form)) + k_gap, ' '), {}});
    }

    static void add_letter(Line& line, const Gpu& gpu)
    {
        line.push_back({std::string(letter(gpu.state)), style_of(gpu.state)});
    }

    /// In the user's own: the run's number, the use and the memory. In those of others their name.
    void add_cell(Line& line, const Gpu& gpu) const
    {
        const Holder* holder =
            gpu.holder < 0 || gpu.holder >= static_cast<int>(m_picture.holders.size())
                ? nullptr
                : &m_picture.holders[static_cast<std::size_t>(gpu.holder)];
        const Style style = style_of(gpu.state);
        const auto padded = [](const std::string& text, int width) {
            const std::string shown = clipped(sanitised(text), static_cast<std::size_t>(width));
            return shown + std::string(static_cast<std::size_t>(width) - cells(shown), ' ');
        };
        if (gpu.state == Gpu::State::mine) {
            line.push_back(
                {padded(holder == nullptr ? "mine" : holder->id, m_cell - m_levels), style});
            for (const auto& share : {gpu.busy, gpu.memory}) {
                if (m_levels == 0) {
                    break;
                }
                line.push_back({level(share, m_theme), share ? heat(*share, m_theme) : dim()});
            }
        } else {
            const char* const word = gpu.state == Gpu::State::free       ? "free"
                                     : gpu.state == Gpu::State::reserved ? "rsvd"
                                     : gpu.state == Gpu::State::down     ? "down"
                                     : gpu.state == Gpu::State::others   ? "used"
                                                                         : "?";
            line.push_back({padded(holder == nullptr ? word : holder->who, m_cell), style});
        }
        line.push_back({" ", {}});
    }

    const Picture& m_picture;
    const Theme& m_theme;
    Time m_now;
    int m_width;
    int m_label = 0, m_name = 0, m_most = 0, m_cell = 0;
    int m_levels = 0; ///< cells for use and memory; none if both are unknown everywhere
    Form m_form = Form::counts;
};

struct Selected {
    const GpuNode* node = nullptr;
    const Gpu* gpu = nullptr;
};

Selected gpu_of(const Model& model, std::size_t number)
{
    std::size_t left = number;
    for (const GpuModel& group : model.picture.gpus) {
        for (const GpuNode& node : group.nodes) {
            if (left < node.gpus.size()) {
                return {&node, &node.gpus[left]};
            }
            left -= node.gpus.size();
        }
    }
    return {};
}

const Holder* holder_of(const Model& model, const Gpu* gpu)
{
    const auto& all = model.picture.holders;
    return gpu != nullptr && gpu->holder >= 0 && gpu->holder < static_cast<int>(all.size())
               ? &all[static_cast<std::size_t>(gpu->holder)]
               : nullptr;
}

std::string about_gpu(const Model& model, const Selected& at)
{
    const Gpu& gpu = *at.gpu;
    const Holder* const holder = holder_of(model, at.gpu);
    std::string text = sanitised(at.node->name) + ": ";
    if (holder == nullptr) {
        return text + (gpu.state == Gpu::State::free ? "free"
                       : gpu.state == Gpu::State::reserved
                           ? at.node->reserved.empty()
                                 ? "not held, but reserved or without a free core"
                                 : "not held"
                       : gpu.state == Gpu::State::down    ? "the node accepts no jobs"
                       : gpu.state == Gpu::State::unknown ? "state unknown"
                       : gpu.state == Gpu::State::mine    ? "held by a job of yours"
                                                          : "held by another user's job");
    }
    text += holder->mine ? fmt::format("run {} ({})", sanitised(holder->id), sanitised(holder->who))
                         : fmt::format("{}, job {}", sanitised(holder->who), sanitised(holder->id));
    if (holder->since) {
        text += fmt::format(", since {}", clock_text(*holder->since, model.now));
    }
    if (holder->until) {
        text += fmt::format(", until {}", clock_text(*holder->until, model.now));
    }
    if (gpu.busy) {
        text += fmt::format(", {:.0f} % busy", 100 * *gpu.busy);
    }
    if (gpu.memory) {
        text += fmt::format(", memory {:.0f} %", 100 * *gpu.memory);
    }
    return text;
}

/// The GPU under the mouse, else the selected one.
std::string about_shown(const Model& model)
{
    const Selected at = gpu_of(model, model.pointed_gpu.value_or(model.gpu));
    if (at.gpu == nullptr) {
        return "";
    }
    const std::string text = about_gpu(model, at);
    return at.node->reserved.empty() ? text
                                     : fmt::format("{}, {}", text, sanitised(at.node->reserved));
}

/// When one of the GPUs that are all in use will probably be free.
std::string forecasts(const Model& model)
{
    std::string text;
    for (const GpuModel& group : model.picture.gpus) {
        if (group.free == 0 && !group.forecast.empty()) {
            text += fmt::format("{}{}: {}", text.empty() ? "" : "; ",
                                sanitised(group.name.empty() ? "GPU" : group.name),
                                sanitised(group.forecast));
        }
    }
    return text;
}

Line legend(Form form, const Model& model)
{
    Line line;
    if (form != Form::letters) {
        return line;
    }
    for (const auto& [state, name] : {std::pair{Gpu::State::mine, "mine"},
                                      {Gpu::State::others, "others'"},
                                      {Gpu::State::free, "free"},
                                      {Gpu::State::reserved, "blocked"},
                                      {Gpu::State::down, "down"}}) {
        const bool used = std::any_of(
            model.picture.gpus.begin(), model.picture.gpus.end(),
            [state = state](const GpuModel& group) {
                return std::any_of(
                    group.nodes.begin(), group.nodes.end(), [state](const GpuNode& node) {
                        return std::any_of(node.gpus.begin(), node.gpus.end(),
                                           [state](const Gpu& gpu) { return gpu.state == state; });
                    });
            });
        if (used) {
            line.push_back({fmt::format("{} {}  ", letter(state), name), style_of(state)});
        }
    }
    if (!line.empty()) {
        line.back().text.resize(line.back().text.size() - 2);
    }
    return line;
}

Line title(const Model& model)
{
    int free = 0, total = 0;
    bool known = true;
    for (const GpuModel& group : model.picture.gpus) {
        known = known && group.free;
        free += group.free.value_or(0);
        total += group.total;
    }
    return {
        {fmt::format("1 GPUs: {} of {} free", known ? std::to_string(free) : "?", total), bold()}};
}

std::vector<Spot> spots_of(const Model& model, const Rect& panel)
{
    std::vector<Spot> spots;
    const Rect area = inside(panel);
    (void)GpuText(model, area.width, area.height).lines(spots);
    return spots;
}

} // namespace

int gpu_lines(const Model& model, int width, int most)
{
    return GpuText(model, width, most).count();
}

void draw_gpus(Canvas& canvas, const Rect& panel, const Model& model)
{
    const Rect area = inside(panel);
    const bool focused = model.panels.focus == Panel::gpus;
    if (model.picture.gpus.empty()) {
        draw_frame(canvas, panel, {{"1 GPUs", bold()}}, {}, focused, model.theme);
        const char* const text =
            !model.has_picture || !model.picture.slurm_at
                ? "asking Slurm"
                : "this cluster has no GPUs that Slurm knows: no node has Gres=gpu";
        canvas.put(area.top, area.left, Line{{text, dim()}}, area.width);
        return;
    }
    const GpuText text(model, area.width, area.height);
    std::vector<Spot> spots;
    const std::vector<Line> lines = text.lines(spots);
    Line bottom = legend(text.form(), model);
    if ((focused || model.pointed_gpu) && !spots.empty()) {
        bottom = line_of(about_shown(model));
    } else if (const std::string more = forecasts(model); !more.empty()) {
        bottom.push_back({(bottom.empty() ? "" : "  ") + more, {}});
    }
    draw_frame(canvas, panel, title(model), bottom, focused, model.theme);
    const int shown = std::min(area.height, static_cast<int>(lines.size()));
    for (int i = 0; i < shown; ++i) {
        canvas.put(area.top + i, area.left, lines[static_cast<std::size_t>(i)], area.width);
    }
    if (static_cast<int>(lines.size()) > shown && shown > 0) {
        canvas.put(area.bottom(), area.left,
                   Line{{fmt::format("{} more models: gpuq free",
                                     lines.size() - static_cast<std::size_t>(shown) + 1),
                         dim()},
                        {std::string(static_cast<std::size_t>(area.width), ' '), {}}},
                   area.width);
    }
    for (const Spot& spot : spots) {
        if (focused && spot.gpu == model.gpu && spot.line < area.height) {
            canvas.tint(area.top + spot.line, area.left + spot.column, spot.width, marked());
        }
    }
}

std::optional<std::size_t> gpu_at(const Model& model, const Rect& panel, int row, int column)
{
    const Rect area = inside(panel);
    for (const Spot& spot : spots_of(model, panel)) {
        if (area.top + spot.line == row && column >= area.left + spot.column &&
            column < area.left + spot.column + spot.width) {
            return spot.gpu;
        }
    }
    return std::nullopt;
}

std::size_t gpu_beside(const Model& model, const Rect& panel, int right, int down)
{
    const std::vector<Spot> spots = spots_of(model, panel);
    if (spots.empty()) {
        return model.gpu;
    }
    const std::size_t at = std::min(model.gpu, spots.size() - 1);
    if (down == 0) {
        const auto moved = static_cast<std::ptrdiff_t>(at) + right;
        return static_cast<std::size_t>(
            std::clamp<std::ptrdiff_t>(moved, 0, static_cast<std::ptrdiff_t>(spots.size()) - 1));
    }
    const int line = std::clamp(spots[at].line + down, 0, spots.back().line);
    std::size_t best = at;
    int distance = -1;
    for (const Spot& spot : spots) {
        const int apart = std::abs(spot.column - spots[at].column);
        if (spot.line == line && (distance < 0 || apart < distance)) {
            best = spot.gpu;
            distance = apart;
        }
    }
    return best;
}

std::string run_of_gpu(const Model& model)
{
    const Holder* const holder = holder_of(model, gpu_of(model, model.gpu).gpu);
    return holder == nullptr ? "" : holder->key;
}

} // namespace gpuq::tui
