// SPDX-License-Identifier: GPL-2.0-or-later
#include <ncurses.h>

int main()
{
    return initscr() == nullptr ? 1 : endwin();
}
