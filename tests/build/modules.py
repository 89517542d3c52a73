#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks every #include under src/ and tui/ against the table in src/README.md, and checks that every use of a
function that some library releases declare in another header has the #include for it. Some headers are for one file
alone. No module has more than MOST_LINES lines."""
import collections
import pathlib
import re
import sys

MOST_LINES = 8000

# Headers of third-party libraries, with the name in the table's `library` column.
LIBRARIES = {
    "fmt/": "fmt",
    "nlohmann/": "nlohmann",
    "yaml-cpp/": "yaml-cpp",
    "CLI/": "CLI11",
    "slurm/": "slurm",
    "spdlog/": "spdlog",
    "ncurses": "ncurses",
    "libssh/": "libssh",
    "lua.h": "lua",
    "zlib.h": "zlib",
    "re2/": "re2",
    "nettle/": "nettle",
}

# Headers that one file alone may use.
ONE_FILE = {"ncurses.h": "tui/terminal.cpp", "term.h": "tui/terminal.cpp"}

# Names that newer releases of a library declare only in this header.
MOVED = {
    "fmt::join": "fmt/ranges.h",  # {fmt} 11
}


def table(readme):
    modules = {}
    for line in readme.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and re.fullmatch(r"[a-z_/]+", cells[0]) and cells[0] != "module":
            modules[cells[0]] = (set(cells[2].split()), set(cells[3].split()))
    return modules


def module_of(path, modules):
    """The longest module name that is a directory of a path below src/: cli/render of cli/render/table.h."""
    folders = path.split("/")[:-1]
    while folders and "/".join(folders) not in modules:
        folders.pop()
    return "/".join(folders)


def main(root):
    source = root / "src"
    modules = table(source / "README.md")
    problems = []
    seen = set()
    lines = collections.Counter()
    for path in sorted([*source.rglob("*.[ch]*"), *(root / "tui").rglob("*.[ch]*")]):
        name = path.relative_to(source if source in path.parents else root).as_posix()
        module = module_of(name, modules) if "/" in name else "main"
        if not module:
            problems.append(f"{path}: no module of src/README.md")
            continue
        seen.add(module)
        allowed, libraries = modules[module]
        text = path.read_text()
        lines[module] += text.count("\n")
        for moved, header in MOVED.items():
            if moved in text and f"#include <{header}>" not in text:
                problems.append(f"{path.relative_to(root)}: '{moved}' needs #include <{header}>")
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
            if not found:
                continue
            quote, header = found.groups()
            where = f"{path.relative_to(root)}:{number}"
            if quote == '"':
                other = module_of(header, modules)
                if other != module and other not in allowed:
                    problems.append(f"{where}: module '{module}' may not include '{header}'")
                if not (source / header).exists() and not (other.startswith("tui") and (root / header).exists()):
                    problems.append(f"{where}: no such header in src: '{header}'")
            if quote == "<" and ONE_FILE.get(header, name) != name:
                problems.append(f"{where}: only {ONE_FILE[header]} may use <{header}>")
            for prefix, library in LIBRARIES.items():
                # "slurm/cluster.h" is a module of gpuq, <slurm/slurm.h> the library.
                if quote == "<" and header.startswith(prefix) and library not in libraries:
                    problems.append(f"{where}: module '{module}' may not use library '{library}'")
    problems += [f"module '{module}' has {count} lines; {MOST_LINES} are the most"
                 for module, count in lines.items() if count > MOST_LINES]
    for module in modules.keys() - seen:
        problems.append(f"src/README.md: module '{module}' has no file")
    for module, (allowed, _) in modules.items():
        for other in allowed - modules.keys():
            problems.append(f"src/README.md: module '{module}' may include unknown module '{other}'")
    print("\n".join(problems) or f"{len(seen)} modules, every include as in src/README.md")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
