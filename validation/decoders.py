"""Decoder-only transformers that were measured, and their predicted peaks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tierscope.arch.decoder import DECODERS, Decoder
from tierscope.arch.decoder_memory import DecoderWork, decoder_memory

# of each, sequences and their tokens
SHAPES = {
    "gpt2": (DECODERS["gpt2"], ((8, 1024), (4, 512))),
    "llama-3.2-1b": (
        Decoder("llama-3.2-1b", 16, 2048, 32, 8, 8192, 128256, 8192, tied=True),
        ((2, 2048), (1, 4096)),
    ),
}


@dataclass(frozen=True, slots=True)
class DecoderPeak:
    """One measured configuration; `error`: of the prediction, relative."""

    what: str
    measured: int
    predicted: int
    moment: str

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def decoder_peaks(rows: Sequence[dict[str, Any]]) -> list[DecoderPeak]:
    peaks = []
    for row in rows:
        shape, narrow = SHAPES[row["model"]][0], row["precision"] == "amp"
        assert shape.parameters == row["parameters"], "another network was measured"
        work = DecoderWork(row["batch"], row["length"], narrow, row["flash"], row["recompute"])
        memory = decoder_memory(shape, work)
        what = f"{row['model']}, {row['batch']} x {row['length']} tokens, {row['precision']}, {'flash' if row['flash'] else 'plain'} attention"
        recomputed = ", recomputed" if row["recompute"] else ""
        peaks.append(DecoderPeak(what + recomputed, row["peak_bytes"], memory.peak, memory.moment))
    return peaks
