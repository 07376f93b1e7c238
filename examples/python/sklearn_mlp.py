#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's MLPClassifier, trained batch by batch with partial_fit, as a recurring job.

    /usr/bin/python3 examples/python/sklearn_mlp.py

needs Debian's python3-sklearn. A batch is a step; what it costs is measured, so it pays where scikit-learn's work
is what uses the energy. Its own fit(batch_size=...) hides the steps; partial_fit shows them.
"""

import flyball
import numpy
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

TARGET = 0.95


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(images / 16, labels, test_size=360, random_state=1)
    with flyball.Session("digits-sklearn", batch_sizes=[16, 32, 64, 128], default=64, target=TARGET, max_epochs=80,
                         tries=3, profile_steps=20, energy_tolerance=0.2) as session:
        for attempt in session.attempts():
            model = MLPClassifier((32,), solver="sgd", learning_rate_init=attempt.scale_lr(0.1), momentum=0.0)
            for epoch in attempt.epochs():
                order = numpy.random.permutation(len(train_x))
                for first in attempt.steps(range(0, len(order), attempt.local_batch_size)):
                    batch = order[first : first + attempt.local_batch_size]
                    model.partial_fit(train_x[batch], train_y[batch], classes=range(10))
                accuracy = model.score(test_x, test_y)
                print(f"epoch {epoch + 1} accuracy {accuracy:.4f}", flush=True)
                attempt.report(accuracy)


if __name__ == "__main__":
    main()
