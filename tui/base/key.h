// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace gpuq::tui {

/// A key: a typed character, or one of these.
enum class Special {
    none,
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace,
    left,
    right,
    erase,
    back_tab
};
struct Key {
    Special special = Special::none;
    char32_t character = 0; ///< 1 to 26: with Ctrl
};

} // namespace gpuq::tui
