"""DLIO's tuning, figures 9 to 12: transfer size, threads, HDF5 chunks and compression, each as a gain that is measured on an emulated tier with stripes.

What the tier is, and what is chosen about the studies: `tuned_studies.py`; what is swept: `tuning_sweeps.py`; how rows are judged: `tuning_rows.py`. Gains
in a real application (figure 13): `dlio_applied.py`.
"""

from tierscope.papers.drawn_tuning import draw_tuning
from tierscope.papers.section import Section
from tierscope.papers.tuned_studies import COSMOFLOW, IMAGENET
from tierscope.papers.tuning_rows import TIER, of_cosmoflow, of_dffn, of_imagenet, of_tagger
from tierscope.papers.tuning_sweeps import KIB, ArrayTuning, RecordTuning, ShuffledChunks

_BATCHES, _FEW_BATCHES = 8, 3  # of a rank in an epoch: its reading and preprocessing overlap from the second on


def make(short: bool) -> Section:
    repetitions = 1 if short else 3
    batches = _FEW_BATCHES if short else _BATCHES
    imagenet = RecordTuning.of(256 * KIB, IMAGENET, repetitions, batches)
    cosmoflow = RecordTuning.of(128 * KIB, COSMOFLOW, repetitions, batches)
    tagger = ArrayTuning.of(50, 32, repetitions)
    dffn = ArrayTuning.of(32, 1, repetitions)
    in_memory, beyond_memory = (ShuffledChunks.of(cached, repetitions) for cached in (True, False))
    verdicts = (
        *of_imagenet(imagenet),
        *of_cosmoflow(cosmoflow, imagenet),
        *of_tagger(tagger, in_memory, beyond_memory),
        *of_dffn(dffn),
    )
    records = [(tuning.transfer, tuning.threads, tuning.preprocessing) for tuning in (imagenet, cosmoflow)]
    shuffled = ("", "", ", shuffled, from memory", ", shuffled, from storage")
    figures = (
        draw_tuning("D-F9", "imagenet-tuning", "ImageNet", TIER, records[0]),
        draw_tuning("D-F10", "cosmoflow-tuning", "CosmoFlow", TIER, records[1]),
        draw_tuning("D-F11", "cosmic-tagger-tuning", "Cosmic Tagger", TIER, (tagger.chunks, tagger.levels, in_memory.plain, beyond_memory.plain), shuffled),
        draw_tuning("D-F12", "dffn-tuning", "DFFN", TIER, (dffn.chunks, dffn.levels)),
    )  # fmt: skip
    return Section(verdicts, figures)
