"""The quickstart recipe, shortened, learns more than which byte follows which: its validation loss
ends below the entropy of a byte given the one before it. Without attention a model sees only that
one byte, so it cannot pass, however long it trains.

    python learns_test.py PTRAIN RECIPE                 must pass that bar
    python learns_test.py PTRAIN RECIPE no-attention    of the test build: must miss it
"""
import os
import subprocess
import sys
import tempfile

import command

SHORTER = ["shapes.0.steps=240", "shapes.1.steps=120", "checkpoint.every_steps=0",
           "validation.every_steps=0", "validation.tokens=32768", "validation.sample_tokens=100"]


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
    print("loss of the first step {:.3f}, of the last {:.3f}".format(losses[0], losses[-1]))
    print("validation loss {loss:.3f}; entropies: unigram {unigram:.3f}, bigram {bigram:.3f}"
          .format(**event))
    print(f"sample: {event['sample']!r}")
    assert event["bigram"] < event["unigram"] and event["sample"]
    assert losses[-1] < 0.9 * losses[0], "with or without attention it learns something"
    return int((event["loss"] < event["bigram"]) != (attention == "attention"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
