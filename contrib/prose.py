#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts phrases that make our text hard to read, in occurrences per 10,000 words.

usage: contrib/prose.py [--list] [man|comments|strings|tests ...] [PATH...]     (default: all of them)
--list prints each occurrence as FILE:LINE: SENTENCE. PATH: only files whose path begins with it.
Exits with 1 if a rate is above its limit: `PATTERNS` has both. CONTRIBUTING.md lists replacements.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Name, limit per 10,000 words, regular expression (no case).
PATTERNS = [
    ("say, said", 2, r"\b(say|says|said|saying)\b"),
    ("tell, told", 2, r"\b(tell|tells|told|telling)\b"),
    ("go on", 1, r"\b(go|goes|going|gone|went) on\b"),
    ("headless what", 3, r"\bwhat(ever)?\b(?! (is|are|does|do|did|happens|happened|to do)\b[^.]*\?)"),
    ("there, of a place", 6, r"\bthere\b(?! (is|are|was|were|be|been|has|have|had|exists?|can|may|must|will|would|should|might|"
                              r"could|never|remains?|need)\b)(?!')"),
    ("whoever, nobody", 2, r"\b(whoever|nobody|somebody|anybody|everybody)\b"),
    ("that is none", 0, r"\b(that|which) (is|are) none\b"),
    ("Of a ...", 2, r"(?:^|[.:;] )Of (a|an|the|each|all|this|these|those|one|two|what|which|its|their)\b"),
]


KINDS = ["man", "comments", "strings", "tests"]


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, text=True, capture_output=True, check=True)
    return [ROOT / name for name in names.stdout.splitlines()]


def plain_roff(text):
    """Text of a man page, line by line, without requests and escapes."""
    lines = []
    for line in text.splitlines():
        if re.match(r"\.(\\\"|TH|so|if|ie|el|de|\.)", line):
            line = ""
        line = re.sub(r"^\.[A-Za-z]{1,2}\b ?", "", line)
        line = re.sub(r"\\f[A-Z]|\\f\[[^]]*\]|\\&|\\c", "", line)
        line = re.sub(r"\\\(..|\\\[[^]]*\]", " ", line).replace("\\-", "-").replace("\\ ", " ").replace("\\e", "\\")
        lines.append(line)
    return lines


LITERAL = re.compile(r'R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|//([^\n]*)|/\*(.*?)\*/|\'(?:[^\'\\\n]|\\.)\'', re.S)


def of_cpp(path, wanted):
    """Comments or string literals, line by line."""
    text = re.sub(r"(?m)^#include.*$", "", path.read_text(errors="replace"))
    lines = [""] * (text.count("\n") + 1)
    for match in LITERAL.finditer(text):
        string = match[2] if match[2] is not None else match[3]
        comment = match[4] if match[4] is not None else match[5]
        found = string if wanted == "strings" else comment
        if found is None or "SPDX" in found:
            continue
        number = text.count("\n", 0, match.start())
        for extra, line in enumerate(found.split("\n")):
            line = re.sub(r"^[/!<*\s]*", "", line) if wanted == "comments" else line.replace("\\n", ". ")
            lines[number + extra] += " " + line
    return [line.strip() for line in lines]


def of_script(path, mark="#"):
    """Lines that are comments."""
    return [line.partition(mark)[2].strip() if line.lstrip().startswith(mark) else "" for line in
            path.read_text(errors="replace").splitlines()]


def of_python(path):
    """Docstrings and comments, line by line."""
    text = path.read_text()
    lines = [""] * (text.count("\n") + 1)
    docstring = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and docstring):
            for extra, line in enumerate(token.string.strip("#\"").split("\n")):
                lines[token.start[0] - 1 + extra] += " " + line.strip()
        if token.type not in (tokenize.COMMENT, tokenize.NL):  # a docstring is a statement of its own
            docstring = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return [line.strip() for line in lines]


def sources(kind):
    """Pairs of a path and its lines of prose."""
    if kind == "man":
        for path in tracked("man/*"):
            yield path, plain_roff(path.read_text())
        for path in tracked("*.md"):
            yield path, path.read_text().splitlines()
    elif kind == "comments":
        for path in tracked("src/*.h", "src/*.cpp", "tui/*.h", "tui/*.cpp"):
            yield path, of_cpp(path, "comments")
        for path in tracked("*.cmake", "*CMakeLists.txt", "contrib/*.sh", "contrib/gpuq*", "contrib/packages.txt",
                            "policies/*", ".c[il]*", ".codespellrc"):
            yield path, of_script(path)
        for path in tracked("src/*.lua.inc"):
            yield path, of_script(path, "--")
        for path in tracked("contrib/*.py", "tests/build/*.py"):
            if path.name != "prose.py" and not path.is_symlink():
                yield path, of_python(path)
    elif kind == "strings":
        for path in tracked("src/*.h", "src/*.cpp", "tui/*.h", "tui/*.cpp"):
            yield path, of_cpp(path, "strings")
    else:
        for path in tracked("tests/*.h", "tests/*.cpp"):
            yield path, of_cpp(path, "comments")


def occurrences(lines, expression):
    """Yields (line number, sentence) for each match, which may extend over a line break."""
    starts, text = [], ""
    for line in lines:
        starts.append(len(text))
        text += (line.strip() or ".") + " "
    for match in re.finditer(expression, text, re.I if "Of (" not in expression else 0):
        if match[0].isupper():  # an argument named WHAT
            continue
        number = max(i for i, start in enumerate(starts) if start <= match.start())
        begin = max(text.rfind(". ", 0, match.start() + 1) + 2, match.start() - 80)
        yield number + 1, text[begin:match.end() + 60].strip()


def main():
    listed = "--list" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--list"]
    kinds = [word for word in arguments if word in KINDS] or KINDS
    paths = tuple(str(ROOT / word) for word in arguments if word not in KINDS)
    failed = False
    for kind in kinds:
        texts = [one for one in sources(kind) if not paths or str(one[0]).startswith(paths)]
        if not texts:
            continue
        count = sum(len(re.findall(r"[A-Za-z][A-Za-z'-]+", " ".join(lines))) for _, lines in texts)
        for name, limit, expression in PATTERNS:
            found = [(path, *one) for path, lines in texts for one in occurrences(lines, expression)]
            rate = 10000 * len(found) / max(count, 1)
            failed |= rate > limit
            print(f"{kind:9} {name:18} {rate:6.1f} of {limit} {'' if rate <= limit else 'TOO MANY'}")
            if listed:
                for path, line, sentence in found:
                    print(f"{path.relative_to(ROOT)}:{line}: {sentence}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
