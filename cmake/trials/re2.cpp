// SPDX-License-Identifier: GPL-2.0-or-later
#include <re2/re2.h>

int main()
{
    const re2::RE2 expression("(a+)");
    return expression.ok() && re2::RE2::FullMatch("aa", expression) ? 0 : 1;
}
