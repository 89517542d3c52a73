#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proposes the next try of a sweep: random ones first, then variations of the best. Needs only Python 3.8.

    gpuq sweep --over lr=log:1e-5..1e-1 --over layers=2..8 --over act='relu|gelu' --metric val_loss:min \\
        --propose 'python3 propose_search.py' --tries 60 -- train.py --lr {lr} --layers {layers} --act {act}

It keeps no state: everything is in its input. See gpuq-sweep(1), "Proposed tries".
"""
import json
import math
import os
import random
import sys

RANDOM_TRIES = 10  # before the first variation
RANDOM_SHARE = 0.2  # of the later ones
BEST_SHARE = 0.2  # of the results are varied


class Choices:
    """One of these texts."""

    def __init__(self, texts):
        self.texts = texts

    def random(self, chance):
        return chance.choice(self.texts)

    def near(self, text, chance):
        return text if text in self.texts and chance.random() < 0.7 else self.random(chance)


class Range:
    """A number between two others, perhaps on a logarithmic scale."""

    def __init__(self, low, high):
        self.logarithmic = low.startswith("log:")
        low = low[len("log:"):] if self.logarithmic else low
        self.whole = not self.logarithmic and low.lstrip("+-").isdigit() and high.lstrip("+-").isdigit()
        self.low, self.high = (self.scaled(float(end)) for end in (low, high))

    def scaled(self, number):
        return math.log(number) if self.logarithmic else number

    def text(self, scaled):
        scaled = min(max(scaled, self.low), self.high)
        if self.whole:
            return str(round(scaled))
        return f"{math.exp(scaled) if self.logarithmic else scaled:.6g}"

    def random(self, chance):
        return self.text(chance.uniform(self.low, self.high))

    def near(self, text, chance):
        return self.text(chance.gauss(self.scaled(float(text)), 0.15 * (self.high - self.low)))


def parameters(text):
    """The parameters by name, from lines NAME=VALUES as given to --over."""
    found = {}
    for line in text.splitlines():
        name, _, values = line.partition("=")
        texts = values.split("|" if "|" in values else ",")
        low, dots, high = values.partition("..")
        found[name] = Range(low, high) if dots and len(texts) == 1 else Choices(texts)
    return found


def proposal(space, results, largest_is_best, chance):
    """Values for the next try."""
    ranked = sorted((one for one in results if one["best"] is not None), key=lambda one: one["best"],
                    reverse=largest_is_best)
    if len(results) < RANDOM_TRIES or not ranked or chance.random() < RANDOM_SHARE:
        return {name: values.random(chance) for name, values in space.items()}
    good = chance.choice(ranked[:max(1, int(len(ranked) * BEST_SHARE))])["values"]
    return {name: values.near(good[name], chance) for name, values in space.items()}


def main():
    space = parameters(os.environ["GPUQ_OVER"])
    results = [json.loads(line) for line in sys.stdin]
    chance = random.Random(f"{os.environ['GPUQ_SWEEP']} {len(results)}")
    largest_is_best = os.environ["GPUQ_METRIC"].endswith(":max")
    tried = [one["values"] for one in results]
    for _ in range(100):
        values = proposal(space, results, largest_is_best, chance)
        if values not in tried:
            print(json.dumps(values))
            return


if __name__ == "__main__":
    main()
