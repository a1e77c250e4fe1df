#!/usr/bin/env python3
"""`ptrain plan` finds a layout for every shipped recipe. shipped_recipes_test.py SOURCE PTRAIN"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT, PTRAIN = pathlib.Path(sys.argv[1]), sys.argv[2]
SMALL = ROOT / "configs" / "clusters" / "two-cores.yaml"
# What the recipe is planned on, where it names no machines itself.
CLUSTERS = {"quickstart": SMALL, "gpt2-124m": SMALL, "finetune-hf": SMALL}


def plan(path, *more):
    done = subprocess.run([PTRAIN, "plan", path, "--json", *more], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (path.name, done.stderr)
    return json.loads(done.stdout)


def hf_folder(at):
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import LlamaConfig, LlamaForCausalLM

    LlamaForCausalLM(LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                                 vocab_size=96, max_position_embeddings=2048)).save_pretrained(at)


def main():
    with tempfile.TemporaryDirectory() as folder:
        hf_folder(folder)
        for path in sorted((ROOT / "recipes").glob("*.yaml")):
            more = [f"--cluster={CLUSTERS[path.stem]}"] if path.stem in CLUSTERS else []
            more += [f"model.hf={folder}"] if path.stem == "finetune-hf" else []
            planned = plan(path, *more)
            assert planned["recipe"] == path.stem, planned["recipe"]
            assert all(shape["ranked"] for shape in planned["shapes"])
            print("planned:", path.stem, [shape["ranked"][0]["layout"] for shape in planned["shapes"]])


main()
