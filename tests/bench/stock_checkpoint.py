#!/usr/bin/env python3
"""A checkpoint saved and loaded by stock PyTorch: stock_checkpoint.py save|load FOLDER MIB; one rank, one thread.

The same tensors as bench_checkpoint's, which also loads what this saves and the other way round.
"""
import json
import os
import shutil
import sys
import time

import torch
import torch.distributed.checkpoint as dcp

what, folder, mib = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
tensors = {f"model.layers.{i}.weight": torch.full((4096, 1024), 1.0) for i in range(mib // 16)}
options = {"no_dist": True}
dcp.save({"warm": torch.zeros(4)}, checkpoint_id=f"{folder}/warm", **options)  # imports
if what == "save":
    shutil.rmtree(f"{folder}/stock", ignore_errors=True)
os.sync()
begin, begin_cpu = time.perf_counter(), time.process_time()
if what == "save":
    dcp.save(tensors, checkpoint_id=f"{folder}/stock", **options)
else:
    dcp.load(tensors, checkpoint_id=f"{folder}/step-00000001", **options)
print(json.dumps({"s": time.perf_counter() - begin, "cpu_s": time.process_time() - begin_cpu}))
