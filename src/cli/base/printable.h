// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq::cli {

/// Converts program output for a pager that passes everything to the terminal: keeps colours (SGR)
/// and tabs, begins a new line at a CR that would overwrite one, and sanitises everything else.
/// Input may be split anywhere; output consists of whole lines. Pure.
class Printable {
public:
    /// The lines that these bytes complete.
    std::string feed(std::string_view bytes);
    /// The last incomplete line, and a reset of the colours if needed.
    std::string end();

private:
    std::string finished();

    std::string m_line;
    bool m_after_cr = false;
    bool m_coloured = false;
};

} // namespace gpuq::cli
