#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds identifiers in C++ that contain words for which the field has better ones.

usage: contrib/identifiers.py [PATH...]     (default: src, tui and tests)
Prints FILE:LINE: NAME: SUGGESTION and exits with 1 if there is one. Names of tests are sentences and not checked.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Parts of a name (`k_look_at` and `LookAt` both have look and at), and replacements.
RETIRED = [
    (r"doors?", "services, an interface; a partition; a channel"),
    (r"tell|tells|told|telling", "report, notify, print"),
    (r"say|says|said|saying", "print_message, report, show"),
    (r"look|looks|looked|looking", "query, check, poll, measure, find"),
    (r"words", "arguments, message, text"),
    (r"folders?", "directory"),
    (r"people|persons?", "users, user, user interface"),
    (r"sights?", "checkpoints, candidates"),
    (r"judged?|judging", "check, evaluate, classify"),
    (r"killing", "termination"),
    (r"anybody|nobody|somebody|everybody|whoever", "clients, users, no client"),
    (r"surroundings", "context, environment"),
]
RETIRED_RUNS = [  # several parts in this order
    (r"(go|goes|going|went)_on", "continue"),
    (r"in_words", "text, describe"),
    (r"what_(helps|is|it|came)", "the name of the thing"),
]
# Names that stay.
EXCEPTIONS = {
    "address_words",  # 32-bit words
}
# Older names, to be replaced: add none.
LEGACY = {"Says", "says", "judged", "judging", "judged_directory", "nobody", "somebody", "person"}

TOKEN = re.compile(
    r'R"(?P<d>[^()\\\s]*)\(.*?\)(?P=d)"|"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|\b[0-9](?:\'?[0-9a-zA-Z_.])*'
    r"|'(?:[^'\\\n]|\\.)+'|(?P<name>[A-Za-z_]\w*)", re.S)


def parts(name):
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def suggestion(name):
    if name in EXCEPTIONS or name in LEGACY:
        return None
    words = parts(name)
    for pattern, text in RETIRED:
        if any(re.fullmatch(pattern, word) for word in words):
            return text
    joined = "_".join(words)
    for pattern, text in RETIRED_RUNS:
        if re.search(rf"(?:^|_)(?:{pattern})(?:_|$)", joined):
            return text
    return None


def is_code(path):
    return path.endswith((".h", ".cpp")) and not (ROOT / path).is_symlink()


def main():
    names = subprocess.run(["git", "ls-files", "--", *(sys.argv[1:] or ["src", "tui", "tests"])], cwd=ROOT, text=True,
                           capture_output=True, check=True).stdout.splitlines()
    found = False
    for path in filter(is_code, names):
        text = (ROOT / path).read_text()
        text = re.sub(r"(?m)^\s*#\s*include.*$", "", text)
        tests = set(re.findall(r"\bTEST(?:_[FP])?\(\s*\w+,\s*(\w+)\s*\)", text))
        tests |= set(re.findall(r"\b(?:TEST(?:_[FP])?|INSTANTIATE_TEST_SUITE_P)\(\s*(\w+),", text))
        seen = set()
        for match in TOKEN.finditer(text):
            name = match["name"]
            if name is None or name in tests or name in seen:
                continue
            seen.add(name)
            if text_of := suggestion(name):
                found = True
                print(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {name}: {text_of}")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
