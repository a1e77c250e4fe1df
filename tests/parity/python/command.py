"""Runs the real command on a small text and reads what it left behind."""
import json
import os
import random
import subprocess
import sys
import warnings

import torch
import torch.distributed.checkpoint as dcp

warnings.filterwarnings("ignore", category=UserWarning)


def write_corpus(folder, num_documents=60, seed=5):
    """Documents of long-tailed lengths, some longer than a row; bytes with some order in them."""
    numbers = random.Random(seed)
    os.makedirs(folder)
    for i in range(num_documents):
        length = min(int(numbers.paretovariate(0.9) * 6), 400)
        byte, text = numbers.randrange(97, 123), bytearray()
        for _ in range(length):
            byte = 97 + (byte * 3 + numbers.choice([0, 0, 0, 1, 5])) % 26
            text.append(byte)
        with open(f"{folder}/{i:03}.txt", "wb") as file:
            file.write(text)


def run(ptrain, recipe, folder, timeout=300):
    """`ptrain run` of a recipe (a dictionary: JSON is YAML); the run directory."""
    os.makedirs(folder)
    path = f"{folder}/recipe.yaml"
    with open(path, "w") as file:
        json.dump(recipe, file, indent=1)
    result = subprocess.run([ptrain, "run", path, "--directory", f"{folder}/run"], timeout=timeout,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"ptrain run failed ({result.returncode}):\n{result.stdout[-4000:]}")
    return f"{folder}/run"


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def last_validation(run_folder):
    events = lines(f"{run_folder}/events.jsonl")
    return [event for event in events if event["kind"] == "validation"][-1]


def rows(tool, index, seed, sequence, window, count):
    arguments = [tool, index, *map(str, (seed, sequence, window, count))]
    return json.loads(subprocess.run(arguments, stdout=subprocess.PIPE, check=True).stdout)


def read_data(folder):
    """What a checkpoint says of its data, by stock dcp.load."""
    state = {"data": {"train_hash": "", "validation_hash": ""}}
    dcp.load(state, checkpoint_id=folder)
    return state["data"]


def read_checkpoint(folder, model):
    """Parameters and first moments by name, by stock dcp.load; names and shapes are the model's."""
    entries = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    expected = {name: parameter for name, parameter in model.named_parameters()}
    found = {key.removeprefix("model."): entry for key, entry in entries.items()
             if key.startswith("model.")}
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, entry in found.items():
        assert entry.size == expected[name].shape, (name, entry.size)
        assert entry.properties.dtype == expected[name].dtype, (name, entry.properties)
    blank = {name: torch.empty_like(parameter) for name, parameter in expected.items()}
    state = {"model": blank,
             "optim": {"state": {name: {"exp_avg": torch.empty_like(value),
                                        "step": torch.tensor(0.0)}
                                 for name, value in blank.items()}},
             "data": {"train_hash": "", "validation_hash": ""}, "train": {"step": 0}}
    dcp.load(state, checkpoint_id=folder)
    moments = {name: entry["exp_avg"] for name, entry in state["optim"]["state"].items()}
    steps = {entry["step"].item() for entry in state["optim"]["state"].values()}
    assert steps == {float(state["train"]["step"])}, steps
    return state["model"], moments, state["data"]
