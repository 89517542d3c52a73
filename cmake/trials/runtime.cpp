// SPDX-License-Identifier: GPL-2.0-or-later
#include <iostream>

int main()
{
    std::cout << 1;
}
