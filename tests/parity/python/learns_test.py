"""The quickstart recipe, shortened, learns: its validation loss ends at no more than 0.6 of the
entropy of a byte of the held-out text, and below the entropy of a byte given the one before it.
Without attention a model sees only that one byte, so it cannot go below that, however long it
trains. The entropies are made here, from the bytes that the run has packed.

    python learns_test.py PTRAIN RECIPE                 must pass both bars
    python learns_test.py PTRAIN RECIPE no-attention    of the test build: must miss both
"""
import glob
import math
import os
import subprocess
import sys
import tempfile

import command
import numpy

END = 256  # ends a document; nothing is predicted across it
MOST = 1 << 24  # targets that are counted of a large text
SHORTER = ["shapes.0.steps=420", "shapes.1.steps=180", "checkpoint.every_steps=0",
           "validation.every_steps=0", "validation.tokens=32768", "validation.sample_tokens=100"]


def entropy(values):
    """In nats a value."""
    counts = numpy.unique(values, return_counts=True)[1]
    shares = counts / counts.sum()
    return -(shares * numpy.log(shares)).sum()


def entropies(cache):
    """Of a target, and of a target given the token before it. The held-out text is the smaller."""
    file = min(glob.glob(f"{cache}/*.bin"), key=os.path.getsize)
    tokens = numpy.fromfile(file, dtype="<u2").astype(numpy.int64)
    before, target = tokens[:-1], tokens[1:]
    before, target = before[before != END][:MOST], target[before != END][:MOST]
    return entropy(target), entropy(before * 1000 + target) - entropy(before)


def main(ptrain, recipe, attention="attention"):
    if attention == "no-attention":
        os.environ["PTRAIN_TEST_BUG"] = "attention_zeroed"
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [os.path.abspath(ptrain), "run", os.path.abspath(recipe), *SHORTER,
             f"data.cache={folder}/cache", "--directory", f"{folder}/run"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            sys.exit(f"ptrain run failed ({result.returncode}):\n{result.stdout[-4000:]}")
        event = command.last_validation(f"{folder}/run")
        losses = [line["loss"] for line in command.lines(f"{folder}/run/metrics.jsonl")]
        unigram, bigram = entropies(f"{folder}/cache")
    print("loss of the first step {:.3f}, of the last {:.3f}".format(losses[0], losses[-1]))
    print(f"validation loss {event['loss']:.3f}; entropies: unigram {unigram:.3f} "
          f"(0.6 of it {0.6 * unigram:.3f}), bigram {bigram:.3f}")
    print(f"sample: {event['sample']!r}")
    assert math.isclose(event["unigram"], unigram) and math.isclose(event["bigram"], bigram)
    assert event["sample"]
    assert losses[-1] < 0.9 * losses[0], "with or without attention it learns something"
    bars = [event["loss"] <= 0.6 * unigram, event["loss"] < bigram]
    return int(bars != [attention == "attention"] * 2)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
