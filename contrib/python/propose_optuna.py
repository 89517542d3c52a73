#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proposes the next try of a sweep by Optuna's sampler (TPE). Needs Optuna.

    gpuq sweep --over lr=log:1e-5..1e-1 --over layers=2..8 --metric val_loss:min \\
        --propose 'python3 propose_optuna.py' --tries 60 -- train.py --lr {lr} --layers {layers}

It keeps no state: each call makes a study from the results in its input. See gpuq-sweep(1), "Proposed tries".
"""
import json
import os
import sys

try:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
except ImportError:
    sys.exit("propose_optuna.py: Optuna is not installed: pip install optuna, or use propose_search.py")


def distribution(values):
    """That of the values given to --over."""
    texts = values.split("|" if "|" in values else ",")
    low, dots, high = values.partition("..")
    if not dots or len(texts) > 1:
        return CategoricalDistribution(texts)
    if low.startswith("log:"):
        return FloatDistribution(float(low[len("log:"):]), float(high), log=True)
    try:
        return IntDistribution(int(low), int(high))
    except ValueError:
        return FloatDistribution(float(low), float(high))


def typed(text, kind):
    """A parameter's text as the value that Optuna expects, if it is one."""
    value = text
    if not isinstance(kind, CategoricalDistribution):
        value = int(text) if isinstance(kind, IntDistribution) else float(text)
    if not kind._contains(kind.to_internal_repr(value)):
        raise ValueError(text)
    return value


def past_trial(one, space):
    """A result for Optuna; None: it is outside the space, as one added by hand may be."""
    try:
        values = {name: typed(one["values"][name], kind) for name, kind in space.items()}
    except (KeyError, ValueError):
        return None
    states = optuna.trial.TrialState
    if one["state"] != "ended":
        return optuna.trial.create_trial(state=states.RUNNING, params=values, distributions=space)
    if one["best"] is None:
        return optuna.trial.create_trial(state=states.FAIL, params=values, distributions=space)
    return optuna.trial.create_trial(state=states.COMPLETE, value=one["best"], params=values, distributions=space)


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {}
    for line in os.environ["GPUQ_OVER"].splitlines():
        name, _, values = line.partition("=")
        space[name] = distribution(values)
    results = [json.loads(line) for line in sys.stdin]
    largest_is_best = os.environ["GPUQ_METRIC"].endswith(":max")
    # Others run at the same time: their settings are avoided.
    sampler = optuna.samplers.TPESampler(seed=len(results), constant_liar=True)
    study = optuna.create_study(direction="maximize" if largest_is_best else "minimize", sampler=sampler)
    for one in results:
        trial = past_trial(one, space)
        if trial is not None:
            study.add_trial(trial)
    print(json.dumps({name: str(value) for name, value in study.ask(space).params.items()}))


if __name__ == "__main__":
    main()
