#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the include graph of src/ and tui/ as text: the modules in layers, the highest first.

usage: contrib/draw-modules.py [--write | --check]
Prints the graph. --write replaces the copy in src/README.md. --check exits with 1 if that copy is out of date:
other modules, layers or includes, or a number of files or lines that differs by more than a fifth.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "src/README.md"
BEGIN, END = "<!-- begin: contrib/draw-modules.py --write -->\n```\n", "```\n<!-- end -->\n"
TOLERANCE = 0.2


def table():
    """The module names: the first column of the table in src/README.md."""
    return set(re.findall(r"^\| ([a-z_/]+) \|", README.read_text(), re.M)) - {"module"}


def module_of(path, names):
    folders = path.split("/")[:-1]
    while folders and "/".join(folders) not in names:
        folders.pop()
    return "/".join(folders) or "main"


def read_modules():
    """For each module: its number of files, its number of lines, and the modules it includes."""
    modules = {}
    names = table()
    for base in (ROOT / "src", ROOT / "tui"):
        for path in sorted(base.rglob("*")):
            if path.suffix not in (".h", ".cpp", ".inc"):
                continue
            name = module_of(path.relative_to(ROOT / "src" if base.name == "src" else ROOT).as_posix(), names)
            text = path.read_text()
            files, lines, includes = modules.get(name, (0, 0, set()))
            headers = re.findall(r'^\s*#\s*include\s*"([a-z0-9_/.]+)"', text, re.M)
            includes |= {module_of(header, names) for header in headers} - {name}
            modules[name] = (files + 1, lines + text.count("\n"), includes)
    return modules


def reachable(modules, name):
    found = set()
    waiting = [name]
    while waiting:
        new = modules[waiting.pop()][2] - found
        found |= new
        waiting += new
    return found


def layers(modules):
    """The layer of each module: 0 if it includes no other, else one above the highest one it includes."""
    layer = {}
    while len(layer) < len(modules):
        ready = [name for name in modules if name not in layer and modules[name][2] <= layer.keys()]
        if not ready:
            sys.exit(f"draw-modules: modules include each other: {' '.join(sorted(modules.keys() - layer.keys()))}")
        layer.update({name: max((layer[other] + 1 for other in modules[name][2]), default=0) for name in ready})
    return layer


def draw(modules):
    layer = layers(modules)
    out = "layer  module         files   lines  includes\n"
    for name in sorted(modules, key=lambda name: (-layer[name], name)):
        files, lines, includes = modules[name]
        below = set().union(*(reachable(modules, other) for other in includes))
        shown = sorted(includes - below, key=lambda other: (-layer[other], other))
        out += f"{layer[name]:5}  {name:14} {files:5} {lines / 1000:6.1f}k  {' '.join(shown)}".rstrip() + "\n"
    files, lines = (sum(module[i] for module in modules.values()) for i in (0, 1))
    return out + f"       {len(modules)} modules {files:9} {lines / 1000:6.1f}k\n"


def is_current(copy, now):
    def rows(text):
        return [re.fullmatch(r"(.*?\S) +(\d+) +([\d.]+)k(.*)", line) for line in text.splitlines()[1:]]

    def near(old, new, slack):
        return abs(float(old) - float(new)) <= max(slack, TOLERANCE * float(new))

    pairs = list(zip(rows(copy), rows(now)))
    return len(copy.splitlines()) == len(now.splitlines()) and all(
        old and old[1] == new[1] and old[4] == new[4] and near(old[2], new[2], 3) and near(old[3], new[3], 0.3)
        for old, new in pairs)


def main():
    graph = draw(read_modules())
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(graph, end="")
        return 0
    head, begin, rest = README.read_text().partition(BEGIN)
    copy, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"draw-modules: src/README.md lacks the marks {BEGIN.split(chr(10))[0]} and <!-- end -->")
    if sys.argv[1] == "--write":
        README.write_text(head + BEGIN + graph + END + tail)
    elif not is_current(copy, graph):
        print("src/README.md: the module graph is out of date: run contrib/draw-modules.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
