"""Beside our own training: torch's DataLoader on the same files, and how fast a plain reader in C gets them from the same disk. NumPy and torch are enough."""

import ctypes
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from tierscope.train.steps import Trainer

WORKERS = 8

READER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static char **paths; static long count, next_file; static size_t piece;
static void *reads(void *unused) {
    char *memory; long total = 0;
    if (posix_memalign((void **)&memory, 4096, piece)) return (void *)-1L;
    for (long at; (at = __sync_fetch_and_add(&next_file, 1)) < count;) {
        int file = open(paths[at], O_RDONLY);
        if (file < 0) return (void *)-1L;
        for (ssize_t got; (got = read(file, memory, piece)) > 0;) total += got;
        close(file);
    }
    free(memory);
    return (void *)total;
}
long read_all(char **names, long names_count, int threads, size_t bytes) {
    pthread_t thread[64]; long total = 0; void *part;
    paths = names; count = names_count; next_file = 0; piece = bytes;
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], 0, reads, 0);
    for (int i = 0; i < threads; i++) { pthread_join(thread[i], &part); if ((long)part < 0) return -1; total += (long)part; }
    return total;
}
"""


def write_files(folder: Path, count: int, nbytes: int) -> list[str]:
    random = np.random.default_rng(8)
    paths = [str(folder / f"{number:06d}.raw") for number in range(count)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(random.bytes(nbytes))
            file.flush()
            os.fsync(file.fileno())
    return paths


def evict(paths: list[str]) -> None:
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def plain_reader(paths: list[str], folder: Path, repeats: int) -> list[float]:
    """Bytes per second of a loop in C, cold, as many threads as workers."""
    source, library = folder / "reader.c", folder / "reader.so"
    source.write_text(READER)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-pthread"], check=True)
    read_all = ctypes.CDLL(str(library)).read_all
    read_all.restype, read_all.argtypes = ctypes.c_long, (ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_size_t)
    names = (ctypes.c_char_p * len(paths))(*map(os.fsencode, paths))
    rates = []
    for _ in range(repeats):
        evict(paths)
        start = time.perf_counter()
        nbytes = read_all(names, len(paths), WORKERS, 4 << 20)
        seconds = time.perf_counter() - start
        if nbytes != sum(map(os.path.getsize, paths)):
            raise OSError(f"{folder}: the plain reader did not get all of its {len(paths)} files")
        rates.append(nbytes / seconds)
    return rates


class Files(Dataset[torch.Tensor]):  # type: ignore[misc]
    """As large as a network's input: a larger file is cut, a smaller one repeated."""

    def __init__(self, paths: list[str], nbytes: int) -> None:
        self._paths, self._nbytes = paths, nbytes

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> torch.Tensor:
        stored = np.fromfile(self._paths[number], np.uint8, self._nbytes)
        return torch.from_numpy(stored if len(stored) == self._nbytes else np.resize(stored, self._nbytes))


def _epoch(trainer: Trainer, batches: Iterator[torch.Tensor], dtype: torch.dtype, scale: float) -> int:
    """As a careful user writes it: pinned, copied without waiting, the device waited for once."""
    shape, samples = trainer.network.input_shape, 0
    for batch in batches:
        rows = batch.to(trainer.device, non_blocking=True).view(dtype)
        trainer.train_on(torch.mul(rows, scale).view(-1, *shape))
        samples += len(batch)
    torch.cuda.synchronize(trainer.device)
    return samples


def torch_loader(
    trainer: Trainer, paths: list[str], batch: int, element_bytes: int, repeats: int
) -> list[dict[str, Any]]:
    """Samples per second with torch's DataLoader: from the page cache, and cold."""
    dtype, scale = {1: (torch.uint8, 1 / 255), 2: (torch.int16, 1 / 32768)}[element_bytes]
    nbytes = int(np.prod(trainer.network.input_shape)) * element_bytes
    loader = DataLoader(
        Files(paths, nbytes),
        batch,
        shuffle=True,
        num_workers=WORKERS,
        pin_memory=True,
        persistent_workers=True,
        prefetch_factor=2,
    )
    rows = []
    for repeat in range(repeats + 1):
        for source in ("memory", "disk"):
            if source == "disk":
                evict(paths)
            start = time.perf_counter()
            samples = _epoch(trainer, iter(loader), dtype, scale)
            if repeat:  # the first starts workers
                rows.append({"data": source, "samples_per_second": samples / (time.perf_counter() - start)})
    return rows
