"""Stock PyTorch loads the checkpoints that ptrain writes, exactly.

    python dcp_roundtrip.py DCP_TOOL
"""
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

warnings.filterwarnings("ignore")


def counting(*shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64) / 4).to(dtype).reshape(shape)


EXPECTED = {
    "model": {
        "layers.0.weight": counting(17, 6),
        "cube": counting(3, 5, 7, dtype=torch.float64),
        "large": counting(300, 301),
        "columns": counting(12, 20),
    },
    "optim": {
        "state": {"layers.0.weight": {"exp_avg": counting(17, 6), "step": torch.tensor(0.0)}},
        "param_groups": {"layers.0.weight": {"betas": [0.9, 0.95]}},
    },
    "train": {"step": 7, "tokens": 5_000_000_000, "rate": 0.1, "flag": True, "name": "déjà vu"},
    "data": {"list": [1, 2.5, "x", [True, None]]},
}


def blank(state):
    """The same nesting with empty tensors and no values: what dcp.load fills."""
    if isinstance(state, dict):
        return {key: blank(value) for key, value in state.items()}
    return torch.full_like(state, -1) if isinstance(state, torch.Tensor) else None


def compare(found, expected, where=""):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), (where, found.keys(), expected.keys())
        for key in expected:
            compare(found[key], expected[key], f"{where}/{key}")
    elif isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype and torch.equal(found, expected), where
    else:
        assert type(found) is type(expected) and found == expected, (where, found)


def main(tool):
    for ranks in (1, 2, 4):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, "step-00000001")
            subprocess.run([tool, "write", folder, str(ranks)], check=True)
            state = blank(EXPECTED)
            dcp.load(state, checkpoint_id=folder)
            compare(state, EXPECTED)
            single = os.path.join(root, "single.pt")
            dcp_to_torch_save(folder, single)
            compare(torch.load(single, weights_only=True), EXPECTED)
            print(f"{ranks} ranks: dcp.load and dcp_to_torch_save agree")


if __name__ == "__main__":
    main(sys.argv[1])
