"""Schedules of `ptrain schedule` beside PyTorch's: PyTorch reads and accepts the CSV of every one that has a single copy
of the weights, and where it has the same schedule, its order is the same. schedule_test.py PTRAIN"""
import csv
import io
import json
import subprocess
import sys

from torch.distributed.pipelining import schedules as torch_schedules
from torch.distributed.pipelining.stage import _PipelineStageBase

PTRAIN = sys.argv[1]
SIZES = [(2, 4), (2, 7), (4, 8), (4, 12), (4, 3), (8, 16), (3, 9)]
GENERATORS = {  # of PyTorch: ours, and whether the stages of a rank make a V
    "ScheduleInterleaved1F1B": ("interleaved_1f1b", False),
    "ScheduleLoopedBFS": ("breadth_first", False),
    "ScheduleInterleavedZeroBubble": ("interleaved_zb_1p", False),
    "ScheduleZBVZeroBubble": ("zb_v", True),
    "ScheduleDualPipeV": ("dualpipe_v", True),
}


class Stage(_PipelineStageBase):
    """What a generator of PyTorch asks of a stage, without a module or a group."""

    def __init__(self, num_ranks, num_stages, index):
        self.group_size, self.num_stages, self.stage_index = num_ranks, num_stages, index
        self.group_rank, self.group, self.device, self.submod = 0, None, "cpu", None
        self.has_backward = True
        self.stage_index_to_group_rank = {}

    def _create_grad_recv_info(self, *_):
        raise NotImplementedError

    def _prepare_forward_infra(self, *_):
        raise NotImplementedError

    def _prepare_backward_infra(self, *_):
        raise NotImplementedError


def ptrain(*arguments):
    result = subprocess.run([PTRAIN, "schedule", *arguments], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else None


def rows(text):
    return [[cell for cell in row if cell] for row in csv.reader(io.StringIO(text))]


def of_torch(generator, num_ranks, num_micro_batches, is_v):
    second = 2 * num_ranks - 1 if is_v else num_ranks
    stages = [Stage(num_ranks, 2 * num_ranks, index) for index in (0, second)]
    order = getattr(torch_schedules, generator)(stages, num_micro_batches).pipeline_order
    return [[str(action) for action in order[rank] if action is not None]
            for rank in range(num_ranks)]


def accepts(text):
    """Raises where PyTorch would not run it. It cannot simulate pairs."""
    order = {rank: [torch_schedules._Action.from_str(cell) for cell in row]
             for rank, row in enumerate(rows(text))}
    single = [action for row in order.values() for action in row if action.stage_index >= 0]
    num_stages = max(action.stage_index for action in single) + 1
    num_micro_batches = max(action.microbatch_index for action in single) + 1
    ranks = torch_schedules._validate_schedule(order, len(order), num_stages, num_micro_batches)
    if "OVERLAP" not in text:
        lowered = torch_schedules._add_send_recv(order, lambda stage: ranks[stage], num_stages)
        torch_schedules._simulate_comms_compute(lowered, lambda stage: ranks[stage], num_stages)


def main():
    num_accepted = num_equal = 0
    for entry in json.loads(ptrain("--list", "--json")):
        if entry["weight_copies"] > 1 or entry["name"].endswith("_auto"):
            continue
        for num_ranks, num_micro_batches in SIZES:
            text = ptrain(entry["name"], "--ranks", str(num_ranks), "--micro-batches",
                          str(num_micro_batches), "--torch-csv")
            if text is not None:
                accepts(text)
                num_accepted += 1
    for generator, (name, is_v) in GENERATORS.items():
        for num_ranks, num_micro_batches in SIZES:
            text = ptrain(name, "--ranks", str(num_ranks), "--virtual", "2", "--micro-batches",
                          str(num_micro_batches), "--torch-csv")
            try:
                expected = of_torch(generator, num_ranks, num_micro_batches, is_v)
            except ValueError:  # PyTorch takes fewer numbers of micro-batches
                continue
            assert text is not None and rows(text) == expected, (name, num_ranks,
                                                                 num_micro_batches, text, expected)
            num_equal += 1
    print(f"PyTorch accepts {num_accepted} schedules, and {num_equal} are in its own order")
    assert num_accepted >= 100 and num_equal >= 25


main()
