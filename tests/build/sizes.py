#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that nothing in src/ and tui/ outgrows its reader: lines of a source, files of a directory, data members of a
class, terms of the glossary in src/README.md, and the files that start processes.

usage: tests/build/sizes.py ROOT"""
import pathlib
import re
import sys

MOST_LINES = 600  # of a source; tables (*.inc) have no limit
MOST_FILES = 60  # of a directory, without its subdirectories
MOST_MEMBERS = 25
MOST_TERMS = 25

# Programs are executed by io/subprocess.cpp. The others replace the program of their process, or need a copy of it.
STARTS_PROCESSES = {
    "src/io/subprocess.cpp",
    "src/posix/apart.cpp",  # a copy, for calls that may hang
    "src/remote/gate.cpp",  # a copy, for the other direction of a stream
    "src/remote/serve.cpp",  # a copy: the holder
    "src/slurm/launch.cpp",  # becomes srun
    "src/snapshots/view.cpp",  # becomes the program, in its mount namespace
    "src/supervisor/base/helper.cpp",  # copies of the guardian, which has no threads
    "src/supervisor/base/start_ranks.cpp",  # becomes srun
    "src/supervisor/guardian.cpp",  # a copy: the supervisor
    "src/supervisor/sshd/ssh_server.cpp",  # a copy, for a session
}
START = re.compile(r"(?:(?<!\w)|\bstd)::(?:v?fork|posix_spawnp?|execve?|execvpe?|execl[ep]?|fexecve|system|popen|clone3?)\s*\(")

COMMENT_OR_TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)


def without_comments(text):
    return COMMENT_OR_TEXT.sub(lambda found: "" if found[0].startswith("/") else '""', text)


def declarations(text, begin):
    """The declarations of the class whose body begins there, bodies of functions and nested classes as {}."""
    depth, declaration = 1, ""
    for character in text[begin:]:
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return
        if character == ";" and depth == 1:
            yield declaration.strip()
            declaration = ""
        elif depth == 1 or (depth == 2 and character == "{"):
            declaration += character
            if character == "}" and re.search(r"\)[^()=;]*(:.*)?\{\}$", declaration, re.S):
                declaration = ""  # a function with its body


def members(text, begin):
    count = 0
    for declaration in declarations(text, begin):
        declaration = re.sub(r"\b(public|private|protected)\s*:", "", declaration).strip()
        before = None
        while before != declaration:
            before, declaration = declaration, re.sub(r"<[^<>]*>", "", declaration)
        named = re.fullmatch(r"(?:class|struct|union|enum)\b.*\{\}\s*(\w+)", declaration, re.S)  # struct {...} m_name;
        declaration = named[1] if named else re.split(r"[={]", declaration)[0]
        if declaration and "(" not in declaration and not re.match(
                r"(using|typedef|friend|static|enum|class|struct|union|template|constexpr)\b", declaration) \
                and "operator" not in declaration:
            count += 1 + declaration.count(",")
    return count


def main(root):
    problems = []
    for path in sorted(path for top in ("src", "tui") for path in (root / top).rglob("*") if path.is_dir()):
        files = sum(entry.is_file() for entry in path.iterdir())
        if files > MOST_FILES:
            problems.append(f"{path.relative_to(root)}: {files} files; {MOST_FILES} are the most")
    classes = 0
    for path in sorted(path for top in ("src", "tui") for path in (root / top).rglob("*.[ch]*")):
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        lines = text.count("\n")
        if lines > MOST_LINES:
            problems.append(f"{name}: {lines} lines; {MOST_LINES} are the most")
        text = without_comments(text)
        if START.search(text) and name not in STARTS_PROCESSES:
            problems.append(f"{name}: starts a process: use io/subprocess.h")
        for found in re.finditer(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?(?:\s*:[^{};()]*)?\s*\{", text):
            classes += 1
            count = members(text, found.end())
            if count > MOST_MEMBERS:
                problems.append(f"{name}: {found[1]} has {count} members; {MOST_MEMBERS} are the most")
    glossary = (root / "src/README.md").read_text().partition("## Glossary")[2].partition("\n## ")[0]
    terms = sum(line.startswith("| ") for line in glossary.splitlines()) - 1  # without the heading
    if not 0 < terms <= MOST_TERMS:
        problems.append(f"src/README.md: the glossary has {terms} terms; {MOST_TERMS} are the most")
    print("\n".join(problems) or f"{classes} classes, {terms} terms: nothing is too large")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
