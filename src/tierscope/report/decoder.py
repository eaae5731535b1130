"""What a decoder-only transformer demands, for the terminal: sentences, the answer first."""

from collections.abc import Iterator

from tierscope.arch.decoder import MOST_DEVICES
from tierscope.arch.decoder_memory import is_flash
from tierscope.arch.decoder_needs import LITTLE, DecoderNeeds
from tierscope.arch.requirements import NO, YES
from tierscope.units import about_bytes, about_flops, about_seconds, counted, format_bandwidth, format_fraction


def decoder_sentences(needs: DecoderNeeds) -> Iterator[str]:
    """The first is the answer."""
    memory, shape, split = needs.memory, needs.shape, needs.split
    yield f"{fit_sentence(needs)} {storage_sentence(needs)}"
    if needs.verdict != YES:
        yield _fitting_sentence(needs)
    where = f" of stage {memory.stage}" if split.pipeline > 1 else ""
    yield (
        f"Memory of a device{where}: weights {about_bytes(memory.weights)}, gradients {about_bytes(memory.gradients)}, optimizer {about_bytes(memory.optimizer)}, "
        f"16-bit copies of weights {about_bytes(memory.copies)}, activations {about_bytes(memory.activations)}; the peak, {about_bytes(memory.peak)}, is at: {memory.moment}."
    )
    work = needs.work
    yield (
        f"{counted(split.devices, 'device', grouped=True)} like those of {needs.machine.name} (tensor {split.tensor}, pipeline {split.pipeline}, data {split.data}, {_zero(needs)}); "
        f"batch {work.batch:,} of {counted(work.length, 'token', grouped=True)} for each replica{' and turn of the pipeline' if split.pipeline > 1 else ''}, {'amp' if work.narrow else 'fp32'}, {_attention(needs)}, "
        f"{'all activations recomputed' if work.recompute else 'nothing recomputed'}, Adam."
    )
    if_it_fitted = ", if it fitted" if needs.verdict == NO else ""
    yield (
        f"At {format_fraction(needs.efficiency)} of the peak: {needs.tokens_per_second:,.0f} tokens/s over all devices{if_it_fitted}; {about_flops(needs.flops_per_token)} per token "
        f"({counted(shape.layers, 'layer')} of {shape.hidden:,})."
    )
    yield from _checkpoint_sentences(needs)
    measured = split.devices == 1 and not split.zero
    yield (
        "Modelled; peaks on one H200 were predicted so for two small transformers ('python -m validation accelerator')."
        if measured
        else "Modelled; only one device without ZeRO was measured, splits follow from published formulas, without buffers for communication."
    )


def fit_sentence(needs: DecoderNeeds) -> str:
    peak, there = about_bytes(needs.memory.peak), about_bytes(needs.machine.memory)
    parameters = f"{needs.shape.name}: {needs.shape.parameters:,} parameters"
    work = f"with batch {needs.work.batch:,} of {counted(needs.work.length, 'token', grouped=True)}"
    if needs.verdict == NO:
        return f"{parameters}; does not fit {work}: a device needs {peak}, and one of {needs.machine.name} has {there}."
    verdict = "fits" if needs.verdict == YES else "may not fit"
    return (
        f"{parameters}; {verdict} {work}: a device needs {peak} of the {there} of {needs.machine.name}{_beyond(needs)}."
    )


def _beyond(needs: DecoderNeeds) -> str:
    """More devices than the system has are like its own, but more often."""
    wanted, there = needs.split.devices, needs.machine.nodes * needs.machine.accelerators
    if wanted <= there:
        return ""
    return f" (extrapolated: {counted(wanted, 'device', grouped=True)}, and {needs.machine.name} has {there:,})"


def _fitting_sentence(needs: DecoderNeeds) -> str:
    fitting = needs.fitting
    if fitting is None:
        return f"No split of powers of two over at most {MOST_DEVICES:,} devices fits either: use a smaller --batch or --sequence, or devices with more memory."
    split = fitting.split
    options = [
        f"--tensor-parallel {split.tensor}" if split.tensor > 1 else "",
        f"--pipeline-parallel {split.pipeline}" if split.pipeline > 1 else "",
        "--recompute full" if fitting.work.recompute else "",
    ]
    how = f"with {' '.join(filter(None, options))}" if any(options) else "without splitting a replica"
    return f"It fits {how}: {about_bytes(fitting.memory.peak)} of a device{_beyond(fitting)}."


def storage_sentence(needs: DecoderNeeds) -> str:
    tokens = "matters" if needs.tokens_matter else "does not matter"
    saves = "it does" if needs.checkpoints_matter else "it hardly does"
    if needs.tokens_matter and needs.checkpoints_matter:
        saves = "too"
    verdict = f"Storage for tokens {tokens} ({about_bytes(needs.token_bytes_per_second)}/s for the whole job at {format_fraction(needs.efficiency)} of the peak); for checkpoints {saves}"
    if needs.verdict == NO:
        saves = "matters" if needs.checkpoints_matter else "hardly matters"
        verdict = f"So there is no verdict on storage for tokens: no such step can run. Storage for checkpoints {saves}"
    return (
        f"{verdict}: {about_bytes(needs.checkpoint_bytes)} each, at most {about_bytes(max(needs.rank_bytes))} of a rank; "
        f"one every 30 minutes needs {about_bytes(needs.half_hourly_bandwidth)}/s to pause training for {LITTLE:.0%} of the time{_given(needs)}."
    )


def _given(needs: DecoderNeeds) -> str:
    """Whether a known bandwidth is enough for that."""
    there = needs.save.bandwidth
    if there is None:
        return ""
    return f", and {format_bandwidth(there)} is {'enough' if there >= needs.half_hourly_bandwidth else 'too little'}"


def _attention(needs: DecoderNeeds) -> str:
    if is_flash(needs.shape, needs.work):
        return "flash attention"
    return f"plain attention{' (there is no flash kernel for grouped queries in fp32)' if needs.work.flash else ''}"


def _zero(needs: DecoderNeeds) -> str:
    split = needs.split
    return f"ZeRO {split.zero}{', which divides nothing over one replica' if split.zero and split.data == 1 else ''}"


def _checkpoint_sentences(needs: DecoderNeeds) -> Iterator[str]:
    seconds, best = needs.save_seconds, needs.best
    if seconds is None or needs.save.bandwidth is None:
        return
    line = f"At {format_bandwidth(needs.save.bandwidth)} a checkpoint takes {about_seconds(seconds)}"
    if best is None or needs.save.failures is None:
        yield f"{line}; with --mean-time-between-failures, the best interval and the goodput are shown."
        return
    yield (
        f"{line}; with a failure every {about_seconds(needs.save.failures)} (estimated, Young–Daly): best every {about_seconds(best.seconds)}, "
        f"goodput at most {best.goodput:.1%}."
    )
