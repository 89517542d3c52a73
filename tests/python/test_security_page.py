# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq-security(7): every test that it names for a defence exists."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "man" / "gpuq-security.7"


def defences():
    """Threat -> the tests listed below it, by file."""
    threat, file, found = None, None, {}
    for line in PAGE.read_text().splitlines():
        if line.startswith(".SH") or line == ".TP":
            threat, file = None, None
        elif line.startswith(".B ") and threat is None:
            threat = line[3:]
        elif match := re.fullmatch(r"\.IR (\S+\.(?:cpp|py)) :", line):
            file = match[1].replace("\\-", "-")
            found.setdefault(threat, {})[file] = []
        elif file and not line.startswith("."):
            names = line.replace("\\:", "").split(",")  # remove the break points of long names
            found[threat][file] += [name.strip() for name in names if name.strip()]
        elif file and line == ".br":
            file = None
    return found


def is_there(text, name):
    if "." in name:
        suite, test = name.split(".")
        return re.search(rf"^(TYPED_)?TEST(_F|_P)?\(\s*{suite},\s*{test}\)", text, re.M)
    return re.search(rf"^def {name}\(", text, re.M)


def test_each_named_test_is_there():
    found = defences()
    assert len(found) > 10
    missing = [f"{file}: {name}" for tests in found.values() for file, names in tests.items() for name in names
               if not (ROOT / "tests" / file).exists() or not is_there((ROOT / "tests" / file).read_text(), name)]
    assert not missing


def test_each_threat_has_tests():
    assert all(tests and all(tests.values()) for tests in defences().values())


def test_a_name_that_is_not_there_is_noticed():
    text = "TEST_F(Suite, Name)\n{\n}\ndef test_a(person):\n    pass\n"
    assert is_there(text, "Suite.Name") and is_there(text, "test_a")
    assert not is_there(text, "Suite.Nam") and not is_there(text, "test_b")


def test_what_is_reported_to_whom_is_in_the_tree():
    text = (ROOT / "SECURITY.md").read_text()
    assert "gpuq-security(7)" in text and "Reporting" in text
    assert all((ROOT / path).exists() for path in re.findall(r"`((?:man|contrib)/[^`]+)`", text))
