#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the line coverage of each module from a JSON summary of gcovr. Fails if one is below its floor."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "build"))
from modules import module_of, table  # noqa: E402

# Percent of the lines of a module together with the modules inside it (runs and runs/insight).
FLOORS = {
    "checkpoint": 85,
    "cli/client": 70,
    "core": 85,
    "credentials": 85,
    "policy": 85,
    "remote": 70,
    "runs": 85,
    "sim": 85,
    "supervisor": 70,
    "telemetry": 85,
    "wire": 85,
}


def main(summary):
    modules = table(ROOT / "src" / "README.md")
    lines = {module: [0, 0] for module in modules}
    for file in json.loads(pathlib.Path(summary).read_text())["files"]:
        count = lines.get(module_of(file["filename"].removeprefix("src/"), modules))
        if count:
            count[0] += file["line_covered"]
            count[1] += file["line_total"]
    print("| module | lines | executed | floor |\n|---|---|---|---|")
    for module, (executed, total) in lines.items():
        if total:
            print(f"| {module} | {total} | {100 * executed / total:.1f} % | |")
    too_low = 0
    for module, floor in FLOORS.items():
        inside = [count for name, count in lines.items() if f"{name}/".startswith(f"{module}/")]
        executed, total = map(sum, zip(*inside))
        percent = 100 * executed / total
        too_low += percent < floor
        print(f"| **{module}** | {total} | {percent:.1f} %{' TOO LOW' * (percent < floor)} | {floor} % |")
    return 1 if too_low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
