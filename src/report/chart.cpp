// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/chart.h"

#include "core/sanitise.h"
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace gpuq::report {
namespace {

/// In the chart's own units, which are pixels on a screen that it just fits.
struct Frame {
    std::string_view name;
    double width;
    double height;
};
constexpr std::array k_frames = {Frame{"wide", 860, 320}, Frame{"narrow", 400, 290}};

constexpr double k_letter = 7; ///< how wide one is, about
constexpr double k_top = 28;   ///< with the title of y above the chart
constexpr double k_bottom = 44;

double width_of(const std::string& label)
{
    return k_letter * static_cast<double>(cells(sanitised(label)));
}

/// One drawing of a chart.
class Drawing {
public:
    Drawing(const Chart& chart, const Frame& frame)
        : m_chart(chart)
        , m_frame(frame)
        , m_right(frame.width - 18)
        , m_floor(frame.height - k_bottom)
    {
        for (const Tick& tick : chart.y.ticks) {
            m_left = std::max(m_left, width_of(tick.label) + 12);
        }
    }

    std::string svg() const
    {
        const std::string id = fmt::format("{}-{}", m_chart.id, m_frame.name);
        std::string text =
            fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" "
                        "aria-labelledby=\"{}-title {}-desc\">\n<title id=\"{}-title\">{}</title>\n"
                        "<desc id=\"{}-desc\">{}</desc>\n",
                        m_frame.name, m_frame.width, m_frame.height, id, id, id,
                        html_text(m_chart.title), id, html_text(m_chart.description));
        text += y_axis() + x_axis();
        for (std::size_t i = 0; i < m_chart.curves.size(); ++i) {
            text += curve(i);
        }
        return text + marks() + "</svg>\n";
    }

private:
    static double part(const Axis& axis, double value)
    {
        const auto scale = [&](double number) {
            return axis.logarithmic ? std::log(std::max(number, axis.low)) : number;
        };
        const double width = scale(axis.high) - scale(axis.low);
        const double share = width > 0 ? (scale(value) - scale(axis.low)) / width : 0;
        return std::clamp(share, 0.0, 1.0);
    }
    double x(double value) const { return m_left + part(m_chart.x, value) * (m_right - m_left); }
    double y(double value) const { return m_floor - part(m_chart.y, value) * (m_floor - k_top); }

    static std::string line(std::string_view kind, Point from, Point to)
    {
        return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
                           "y2=\"{:.1f}\"/>\n",
                           kind, from.x, from.y, to.x, to.y);
    }
    static std::string words(std::string_view anchor, Point at, const std::string& text,
                             std::string_view kind = "label")
    {
        return fmt::format(
            "<text class=\"{}\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind,
            anchor, at.x, at.y, html_text(text));
    }

    std::string y_axis() const
    {
        std::string text = words("start", {2, 14}, m_chart.y.title);
        for (const Tick& tick : m_chart.y.ticks) {
            const double height = y(tick.at);
            text += line("grid", {m_left, height}, {m_right, height});
            text += words("end", {m_left - 8, height + 4}, tick.label);
        }
        return text;
    }

    std::string x_axis() const
    {
        std::string text;
        double taken = 0; ///< by labels so far
        for (const Tick& tick : m_chart.x.ticks) {
            const double width = width_of(tick.label);
            const double middle =
                std::clamp(x(tick.at), width / 2, std::max(width / 2, m_frame.width - width / 2));
            text += line("grid", {x(tick.at), k_top}, {x(tick.at), m_floor});
            if (middle - width / 2 < taken) {
                continue;
            }
            taken = middle + width / 2 + k_letter;
            text += words("middle", {middle, m_floor + 18}, tick.label);
        }
        text += line("axis", {m_left, m_floor}, {m_right, m_floor});
        return text + words("end", {m_right, m_frame.height - 6}, m_chart.x.title);
    }

    std::string curve(std::size_t number) const
    {
        std::string text = fmt::format("<path class=\"curve curve{}\" d=\"", number);
        char move = 'M';
        for (const Point& point : m_chart.curves[number]) {
            text += fmt::format("{}{:.1f} {:.1f}", move, x(point.x), y(point.y));
            move = 'L';
        }
        return text + "\"/>\n";
    }

    std::string marks() const
    {
        std::string text;
        if (m_chart.upright) {
            const double at = x(m_chart.upright->at);
            const bool fits = at + 6 + width_of(m_chart.upright->label) < m_right;
            text += line("mark", {at, k_top}, {at, m_floor});
            text += words(fits ? "start" : "end", {at + (fits ? 6 : -6), m_floor - 8},
                          m_chart.upright->label, "mark-text");
        }
        if (m_chart.level) {
            const double at = y(m_chart.level->at);
            text += line("mark", {m_left, at}, {m_right, at});
            text += words("end", {m_right - 4, at - 5}, m_chart.level->label, "mark-text");
        }
        return text;
    }

    const Chart& m_chart;
    const Frame& m_frame;
    double m_left = 24;
    double m_right;
    double m_floor;
};

} // namespace

Axis axis_from_zero(std::string title, double high)
{
    const double about = std::max(high, 1e-9) / 5;
    const double ten = std::pow(10, std::floor(std::log10(about)));
    double step = 10 * ten;
    for (const double factor : {5.0, 2.0, 1.0}) {
        step = factor * ten >= about * 0.999 ? factor * ten : step;
    }
    Axis axis;
    axis.title = std::move(title);
    const auto steps = static_cast<int>(std::ceil(std::max(high, 1e-9) / step - 1e-6));
    axis.high = step * steps;
    for (int i = 0; i <= steps; ++i) {
        axis.ticks.push_back({step * i, fmt::format("{:g}", step * i)});
    }
    return axis;
}

std::string html_chart(const Chart& chart)
{
    std::string text;
    for (const Frame& frame : k_frames) {
        text += Drawing(chart, frame).svg();
    }
    return text;
}

std::string html_legend(const std::vector<std::string>& names)
{
    std::string text = "<ul class=\"legend\">\n";
    for (std::size_t i = 0; i < names.size(); ++i) {
        text += fmt::format("<li><svg viewBox=\"0 0 36 10\" aria-hidden=\"true\"><path "
                            "class=\"curve curve{}\" d=\"M0 5H36\"/></svg><span>{}</span></li>\n",
                            i, html_text(names[i]));
    }
    return text + "</ul>\n";
}

} // namespace gpuq::report
