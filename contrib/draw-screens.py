#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the pictures of `gpuq top` in contrib/pictures from a real session: a cluster of its own on this machine (started
and removed here), real trainings, a terminal in tmux. Run it as root before a release, after a build:
    contrib/draw-screens.py build/release/bin
"""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

TOP = Path(__file__).resolve().parent
PICTURES = TOP / "pictures"
COLUMNS, ROWS = 110, 32
CELL_WIDTH, CELL_HEIGHT, FONT = 8.4, 18, 14
FOREGROUND, BACKGROUND = "#d8dee9", "#1c1f26"
THEME = ["#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"]
# (file, keys of tmux send-keys, description)
SCREENS = [("top-runs", ["2", "g", "j", "j"], "GPUs, runs and the selected run"),
           ("top-curves", ["Enter", "]"], "the curves of a run"),
           ("top-timeline", ["]", "]", "]"], "the timeline of a run"),
           ("top-compare", ["Escape", "g", "j", "j", "Space", "Space", "Space", "c"], "three runs compared")]


def colour(code):
    """A colour of a palette of 256."""
    if code < 16:
        return THEME[code % 8]
    if code >= 232:
        return "#" + f"{8 + 10 * (code - 232):02x}" * 3
    levels = [0, 95, 135, 175, 215, 255]
    code -= 16
    return "#" + "".join(f"{levels[part]:02x}" for part in (code // 36, code // 6 % 6, code % 6))


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fill, self.bold, self.dim, self.reverse = FOREGROUND, False, False, False

    def apply(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.reset()
            elif code == 1:
                self.bold = True
            elif code == 2:
                self.dim = True
            elif code == 7:
                self.reverse = True
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fill = THEME[code % 10]
            elif code == 39:
                self.fill = FOREGROUND
            elif code == 38 and codes[:1] == [5]:
                self.fill = colour(codes[1])
                del codes[:2]


def cells(text):
    """The width of a text on the screen."""
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def svg(text, title):
    """The output of `tmux capture-pane -e` as a picture."""
    width, height = COLUMNS * CELL_WIDTH + 20, ROWS * CELL_HEIGHT + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
             f"<title>{html.escape(title)}</title>",
             f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
             f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{FONT}">']
    style = Style()  # a line continues with that of the line before
    for number, line in enumerate(text.split("\n")[:ROWS]):
        column = 0
        y = 10 + number * CELL_HEIGHT
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            if piece.startswith("\x1b"):
                style.apply(piece[2:-1])
                continue
            if not piece:
                continue
            x, length = 10 + column * CELL_WIDTH, cells(piece) * CELL_WIDTH
            fill = style.fill
            if style.reverse:
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{CELL_HEIGHT}" fill="{fill}"/>')
                fill = BACKGROUND
            # Browsers collapse blanks, so each part without two of them has its own place.
            for words in re.finditer(r"\S+(?: \S+)*", piece):
                extra = (' font-weight="bold"' if style.bold else "") + (' opacity="0.6"' if style.dim else "")
                x = 10 + (column + cells(piece[:words.start()])) * CELL_WIDTH
                parts.append(f'<text x="{x:.1f}" y="{y + FONT}" textLength="{cells(words[0]) * CELL_WIDTH:.1f}" '
                             f'lengthAdjust="spacingAndGlyphs" fill="{fill}"{extra}>{html.escape(words[0])}</text>')
            column += cells(piece)
    return "\n".join(parts + ["</g>", "</svg>"]) + "\n"


def main(programs):
    gpuq = Path(programs).resolve() / "gpuq"
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "digits"
        home.mkdir(mode=0o700)
        shutil.copy(TOP / "examples" / "train.py", home)
        env = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        cluster = ["--dir", f"{folder}/cluster"]
        tmux = ["tmux", "-S", f"{folder}/tmux", "-f", "/dev/null"]
        def run(*words, check=True):
            return subprocess.run(words, env=env, cwd=home, check=check, capture_output=True, text=True).stdout
        run(gpuq, "cluster", "up", *cluster, "--nodes", "2", "--gpus", "4", "--model", "k80", "--name", "centre")
        env |= dict(line.removeprefix("export ").split("=", 1) for line in run(gpuq, "cluster", "env", *cluster).splitlines())
        try:
            train = "./train.py"
            for seed, gpus in ((1, 1), (2, 2), (3, 1)):
                run(gpuq, "run", "--detach", "-t", "30m", "-g", str(gpus), "-J", f"digits-{seed}", "--",
                    train, "--epochs", "150", "--seconds-per-epoch", "0.5", "--seed", str(seed))
            run(gpuq, "run", "--detach", "-t", "10m", "-J", "broken", "false", check=False)
            run(gpuq, "run", "--detach", "-t", "1h", "-g", "4", "-J", "wide", "--",
                train, "--epochs", "100", "--seconds-per-epoch", "1")
            run(gpuq, "run", "--detach", "-t", "90m", "-g", "4", "-J", "ablation", train)
            time.sleep(30)
            run(*tmux, "set-option", "-g", "default-terminal", "screen-256color", ";", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), str(gpuq), "top")
            time.sleep(12)
            run(*tmux, "send-keys", "G")
            for name, keys, title in SCREENS:
                for key in keys:
                    run(*tmux, "send-keys", key)
                    time.sleep(0.3)
                time.sleep(3)
                screen = run(*tmux, "capture-pane", "-p", "-e")
                (PICTURES / f"{name}.svg").write_text(svg(screen, f"gpuq top: {title}"))
        finally:
            run(*tmux, "kill-server", check=False)
            run(gpuq, "cluster", "down", *cluster, "--purge", check=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
