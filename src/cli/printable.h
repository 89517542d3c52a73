// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq::cli {

/// What a program wrote, as a pager may be given it that hands all on to the terminal: colours
/// (SGR) and tabs are kept, a CR that draws over a line begins another line, and all else goes
/// through the sanitiser. Bytes may come in any pieces; they come out a line at a time. Pure.
class Printable {
public:
    /// The lines that these bytes complete.
    std::string feed(std::string_view bytes);
    /// What is left without an end, and the usual colours again.
    std::string end();

private:
    std::string finished();

    std::string m_line;
    bool m_after_cr = false;
    bool m_coloured = false;
};

} // namespace gpuq::cli
