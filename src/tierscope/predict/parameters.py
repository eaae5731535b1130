"""What measured epochs may tell of a system: the keys to fit, each with a first guess and its limits."""

from collections.abc import Sequence

from tierscope.predict.case import Case, read_sizes
from tierscope.predict.moved import moved_by, servers_of
from tierscope.predict.rates import LEAST_LATENCY, Parameter, Terms
from tierscope.predict.solving import UNNOTICED

_PERIOD = 0.1  # seconds: of the kernel's throttle of block devices


def parameters_of(cases: Sequence[Case], terms: Terms = Terms()) -> tuple[Parameter, ...]:  # noqa: B008  (frozen)
    """What these measurements may tell, with guesses from what was served at most."""
    parameters: list[Parameter] = []
    sizes = read_sizes(cases)
    counts = [(case, moved_by(case.study, case.reading, case.schedule, case.saving)) for case in cases]
    for number, tier in enumerate(cases[0].study.system.tiers):
        opened = [(case, float(ops[:, number, 0].sum())) for case, (ops, _) in counts if ops[:, number, 0].any()]
        if not opened:
            continue
        servers = [servers_of(case.study, case.study.system.tiers[number]) for case, _ in opened]
        rate = max(
            ops / float(case.io.max()) / places for (case, ops), (places, _) in zip(opened, servers, strict=True)
        )
        waits = [float(case.busy[:, number, 0].sum()) / ops for case, ops in opened]
        read, written = (
            max(
                float(nbytes[:, number, kind].sum())
                / float(case.io.max())
                / servers_of(case.study, case.study.system.tiers[number])[1]
                for case, (_, nbytes) in counts
            )
            for kind in (1, 2)
        )
        if tier.name in terms.linked and read:
            nbytes = max(case.reading.sample_bytes for case, _ in opened)
            parameters.append(Parameter(tier.name, "open_bytes", nbytes / 30, 8.0, max(nbytes / 2, 2.0**14)))
        else:
            parameters.append(Parameter(tier.name, "metadata_ops", 1.3 * rate, rate / 20, rate * 1e5))
        parameters.append(_latency(tier.name, "metadata_latency", min(waits)))
        if read:
            parameters.append(Parameter(tier.name, "bandwidth", 1.3 * read, read / 20, read * 1e5))
        if written:
            parameters.append(Parameter(tier.name, "write_bandwidth", 1.3 * written, written / 20, written * 1e5))
        if len(sizes) > 1 and read:
            parameters.append(Parameter(tier.name, "read_ops", UNNOTICED * rate, rate / 20, rate * 1e6))
        reads = [float(case.busy[:, number, 1:].sum()) / ops for case, ops in opened]
        parameters.append(_latency(tier.name, "latency", min(reads)))
        if tier.name in terms.credit:
            shortest = min(float(case.io.max()) / case.share for case, _ in opened)
            most = max(
                2 / rate, min(600.0, shortest / 2)
            )  # with more, an epoch would be a burst and hardly anything else
            parameters.append(Parameter(tier.name, "credit", min(30 / rate, most / 2), 1 / rate, most))
        if tier.name in terms.quotas:
            parameters.append(Parameter(tier.name, "quota_period", _PERIOD, _PERIOD / 20, 20 * _PERIOD))
        if tier.name in terms.streams and read:
            alone = max(
                case.reading.sample_bytes * ops / float(case.busy[:, number, 1].sum())
                for case, ops in opened
                if case.busy[:, number, 1].any()
            )
            parameters.append(Parameter(tier.name, "stream_bandwidth", 1.5 * alone, alone / 20, alone * 1e4))
    return tuple(parameters)


def _latency(tier: str, key: str, seconds: float) -> Parameter:
    most = max(seconds, 10 * LEAST_LATENCY)
    return Parameter(tier, key, max(2 * LEAST_LATENCY, most / 10), LEAST_LATENCY, most)
