"""`profiled_training.py FOLDER`: computes under torch's profiler, half of the time while a thread reads; says itself when it read and computed (told.json)."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch

import tierscope as ts

READ_SECONDS = 0.01  # of each, so that reading is I/O time that can be seen
folder = Path(sys.argv[1])
reads: list[tuple[str, int, int, int]] = []
computed: list[tuple[int, int]] = []
paths: dict[int, str] = {}
plain_open, plain_read = os.open, os.read


def told_open(path: Any, *arguments: Any, **options: Any) -> int:
    descriptor = plain_open(path, *arguments, **options)
    paths[descriptor] = os.fspath(path)
    return descriptor


def told_read(descriptor: int, size: int) -> bytes:
    start = time.time_ns()
    if size > 1:
        time.sleep(READ_SECONDS)
    content = plain_read(descriptor, size)
    reads.append((paths[descriptor], start, time.time_ns(), len(content)))
    return content


def read(times: int) -> None:
    descriptor = os.open(folder / "data.bin", os.O_RDONLY)
    for _ in range(times):
        os.read(descriptor, 4096)
        os.lseek(descriptor, 0, os.SEEK_SET)
    os.close(descriptor)


def compute(seconds: float) -> None:
    start = time.time_ns()
    with ts.phase("compute"):
        while time.time_ns() - start < seconds * 1e9:
            torch.ones(32, 32) @ torch.ones(32, 32)
    computed.append((start, time.time_ns()))


(folder / "data.bin").write_bytes(bytes(4096))
os.open, os.read = told_open, told_read
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    ts.mark_clock(folder)
    reader = threading.Thread(target=read, args=(10,))
    reader.start()
    compute(10 * READ_SECONDS)
    reader.join()
    read(10)  # with nothing to hide behind
    ts.mark_clock(folder)
profiler.export_chrome_trace(str(folder / "torch.json"))
(folder / "told.json").write_text(json.dumps({"reads": reads, "computed": computed}))
