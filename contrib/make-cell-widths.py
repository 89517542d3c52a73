#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints src/term/cell_widths.inc from this Python's Unicode tables. Run it again for a newer Unicode version."""
import sys
import unicodedata

# Not drawn, despite their category: fillers and the grapheme joiner.
BLANKS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x3164, 0xFFA0}
BLANKS |= set(range(0x180B, 0x1810)) | set(range(0xFE00, 0xFE10)) | set(range(0xE0000, 0xE1000))


def kind(point):
    char = chr(point)
    category = unicodedata.category(char)
    if category in ("Cc", "Cs"):
        return None
    if category == "Cf" or point in BLANKS:
        return "invisible"
    if category in ("Mn", "Me"):
        return "combining"
    return "wide" if unicodedata.east_asian_width(char) in "WF" else None


def ranges(wanted):
    start = None
    for point in range(0x110001):
        inside = point < 0x110000 and kind(point) == wanted
        if inside and start is None:
            start = point
        elif not inside and start is not None:
            yield start, point - 1
            start = None


print("// SPDX-License-Identifier: GPL-2.0-or-later")
print(f"// Made by contrib/make-cell-widths.py from Unicode {unicodedata.unidata_version}; do not edit.")
for name in ("invisible", "combining", "wide"):
    cells = [f"{{0x{first:04x}, 0x{last:04x}}}," for first, last in ranges(name)]
    print(f"constexpr Range k_{name}[] = {{")
    for at in range(0, len(cells), 4):
        print("    " + " ".join(cells[at:at + 4]))
    print("};")
