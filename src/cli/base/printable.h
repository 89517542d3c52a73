// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq::cli {

/// Converts output from outside for a pager or a terminal that obeys everything: keeps colours
/// (SGR) and tabs, begins a new line at a CR that would overwrite one, and sanitises everything
/// else. Input may be split anywhere. Pure.
class Printable {
public:
    /// When a line is passed on. `whole`: when it is complete. `live`: as it comes, so that a
    /// question is visible before its answer; CR with ESC [ K, by which gpuq redraws a line of its
    /// own, is then passed as well.
    enum class Lines { whole, live };

    explicit Printable(Lines lines = Lines::whole)
        : m_is_live(lines == Lines::live)
    {
    }

    /// Everything that can be shown now.
    std::string feed(std::string_view bytes);
    /// The last incomplete line, and a reset of the colours if needed.
    std::string end();

private:
    void take_return(std::string& text);
    void take_complete(std::string& text);
    std::string finished();
    std::string converted(std::string_view bytes);

    const bool m_is_live;
    std::string m_line; ///< not passed on yet; begins with a CR whose effect is not known, if live
    bool m_after_cr = false;
    bool m_is_open = false; ///< a part of the line was passed on
    bool m_coloured = false;
};

} // namespace gpuq::cli
