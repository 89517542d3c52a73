// SPDX-License-Identifier: GPL-2.0-or-later
#include <zlib.h>

int main()
{
    return gzopen("", "r") == nullptr ? 0 : 1;
}
