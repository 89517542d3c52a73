#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes curves_function.csv, curves_digits.csv and curves_letters.csv: the validation losses of 64 small trainings each,
81 epochs long.

A line per training: learning rate, width, batch size, seed of its weights, then the loss after each epoch; nan once it
has diverged. `function`: a network with tanh units learns the values of a fixed random function of 8 inputs with noise,
by gradient descent with momentum. `digits`: one with ReLU units and dropout learns handwritten digits (a third of
scikit-learn's set, the others are held out) by Adam, with a rate that falls to zero. `letters`: one with tanh units
predicts the next letter of an English text (the licence of this project) by gradient descent with momentum; the last
quarter of the text is held out. Other settings and weights follow from a SEED, 4 by default.
Needs PyTorch and scikit-learn; takes some minutes.

    tests/sweeps/record_curves.py function >tests/sweeps/curves_function.csv
    tests/sweeps/record_curves.py digits >tests/sweeps/curves_digits.csv
    tests/sweeps/record_curves.py letters >tests/sweeps/curves_letters.csv
    tests/sweeps/record_curves.py digits 5 >held_out.csv
"""
import math
import random
import sys
from pathlib import Path

import torch

EPOCHS = 81
TRAININGS = 64


def target(inputs):
    generator = torch.Generator().manual_seed(1)
    hidden = torch.tanh(inputs @ torch.randn(8, 12, generator=generator))
    return hidden @ torch.randn(12, 1, generator=generator) + torch.sin(2 * inputs[:, :1])


def data(count, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 8, generator=generator)
    return inputs, target(inputs) + 0.3 * torch.randn(count, 1, generator=generator)


def losses(rate, width, batch, seed):
    """The validation loss after each epoch."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    loss = torch.nn.MSELoss()
    inputs, values = data(512, 2)
    held_inputs, held_values = data(512, 3)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(inputs)).split(batch):
            optimizer.zero_grad()
            loss(model(inputs[chosen]), values[chosen]).backward()
            optimizer.step()
        with torch.no_grad():
            yield loss(model(held_inputs), held_values).item()


def losses_of_digits(rate, width, batch, seed):
    """The same for the digits."""
    from sklearn.datasets import load_digits
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    classes = torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(5))
    images, classes = images[order], classes[order]
    known = len(images) // 3
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        model.train()
        for chosen in torch.randperm(known).split(batch):
            optimizer.zero_grad()
            loss(model(images[chosen]), classes[chosen]).backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            yield loss(model(images[known:]), classes[known:]).item()


def losses_of_letters(rate, width, batch, seed):
    """The same for the letters."""
    text = (Path(__file__).resolve().parents[2] / "LICENSE").read_text().lower()
    alphabet = sorted(set(text))
    letters = torch.tensor([alphabet.index(letter) for letter in text])
    contexts = letters.unfold(0, 7, 1)
    inputs, targets = contexts[:, :-1], contexts[:, -1]
    known = len(inputs) * 3 // 4
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Embedding(len(alphabet), 8), torch.nn.Flatten(), torch.nn.Linear(6 * 8, width),
                                torch.nn.Tanh(), torch.nn.Linear(width, len(alphabet)))
    optimizer = torch.optim.SGD(model.parameters(), lr=10 * rate, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(known).split(16 * batch):
            optimizer.zero_grad()
            loss(model(inputs[chosen]), targets[chosen]).backward()
            optimizer.step()
        with torch.no_grad():
            yield loss(model(inputs[known:]), targets[known:]).item()


def main():
    torch.set_num_threads(1)
    first_seed = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    chance = random.Random(first_seed)
    task = {"function": losses, "digits": losses_of_digits, "letters": losses_of_letters}[sys.argv[1]]
    for seed in range(TRAININGS):
        rate = 10 ** chance.uniform(-5, 0)
        width, batch = chance.choice([4, 8, 16, 32, 64, 128]), chance.choice([8, 16, 32, 64])
        curve = [value if math.isfinite(value) else math.nan for value in task(rate, width, batch, seed + 1000 * (first_seed - 4))]
        print(f"{rate:.3g},{width},{batch},{seed}," + ",".join(f"{value:.5g}" for value in curve), flush=True)


if __name__ == "__main__":
    main()
