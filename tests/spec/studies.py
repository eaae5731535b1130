"""Hypothesis strategies for whole studies, made from the schema: a new key is covered as soon as it is declared."""

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tierscope.arch.networks import NETWORKS
from tierscope.formats import FORMATS
from tierscope.spec import keys, kinds, schema
from tierscope.spec.goal import Goal, GoalKind
from tierscope.spec.study import (
    FRAMEWORKS,
    Accelerator,
    Axis,
    Checkpoint,
    Dataset,
    Hardware,
    Hdf5Layout,
    Model,
    Placement,
    Reader,
    Statistics,
    Study,
    System,
    Tier,
    Train,
    Transformer,
    Workload,
)

PATHS = st.text(min_size=1, max_size=20).filter(
    lambda text: text.strip() and not {"\0", "\n", "{", "}"} & set(text)
) | st.sampled_from(
    ["{out}/x", "$HOME/y", "null", "a #b", "x: y", "-", "a ", "'", '"', "d" * 100, "~", "a:", "x\u2028"]
)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True) | st.sampled_from(["null", "1e3", "off"])

# Swept alone, these leave any study possible.
SWEPT = [
    "seed",
    "workload.dataset.compressibility",
    "workload.reader.batch_size",
    "workload.reader.transfer_size",
    "workload.train.computation_time",
    "placement.cache_rate",
    "system.tiers.far.path",
    "system.tiers.far.capacity",
    "system.tiers.far.read_ops",
    "system.tiers.far.variation",
]


def values_of(kind: kinds.Kind) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911
    """Values that a key of this kind may have."""
    match kind:
        case kinds.Optional(kind=inner):
            return st.none() | values_of(inner)
        case kinds.Integer(_low=low, _high=high):
            return st.integers(int(low or 0), int(high or 2**62))
        case kinds.Bytes(_low=low, _high=high):
            least, most = int(low or 0), int(high or 2**63 - 1)
            usual_bytes = [value for value in (2**20, 10**9, 10**12) if least <= value <= most]
            return st.integers(least, most) | st.sampled_from(usual_bytes)
        case GoalKind():
            times = st.sampled_from([0.4, 4.0, 600.0])
            return (
                times.map(lambda value: Goal("io", value))
                | times.map(lambda value: Goal("epoch", value))
                | st.just(Goal("au", 0.9))
            )
        case kinds.Choice(names=names):
            return st.sampled_from(names)
        case kinds.FlagOr(names=names):
            return st.sampled_from([True, False, *names[2:]])
        case kinds.Flag():
            return st.booleans()
        case kinds.Dimensions():
            return st.lists(st.integers(1, 9999999), min_size=2, max_size=5).map(
                lambda sides: "x".join(map(str, sides))
            )
        case kinds.Name():
            return NAMES
        case kinds.PathPattern():
            return PATHS
        case kinds.Bounded(_low=low, _high=high, _above=above):
            bottom = low if low is not None else above
            top = high if high is not None else kind.most if kind.most is not None else math.inf
            limits = st.floats(
                bottom,
                kind.most if high is None else high,
                exclude_min=above is not None,
                allow_infinity=False,
                allow_nan=False,
            )
            usual = [0.65, 0.1, 0.0015, 1 / 3, 12.5e9, 35000.0]
            fitting = [value for value in usual if value <= top and value >= (bottom or 0)]
            return (limits | st.sampled_from(fitting)).filter(lambda value: not 0 < value < kind.least)
    raise AssertionError(f"no strategy for {kind}")


def section(section_type: type, **given: Any) -> st.SearchStrategy[Any]:
    """A section with any value in every key that is not given."""
    drawn = {
        field.name: values_of(field.meta.kind)
        for field in schema.fields(section_type)
        if isinstance(field.meta, schema.Key) and field.name not in given
    }
    return st.builds(section_type, **drawn, **given)


@st.composite
def tiers(draw: st.DrawFn, name: str, emulate: st.SearchStrategy[bool]) -> Tier:
    gateway = draw(values_of(kinds.Bandwidth(1)) | st.none())
    rate = draw(values_of(kinds.Rate(0.001)))
    servers = draw(values_of(kinds.Integer(1, 10**5)))
    emulated = draw(emulate)
    placed = draw(st.sampled_from(["", "ost", "pool"])) if name == "far" and not emulated else ""
    tier: Tier = draw(
        section(
            Tier,
            name=st.just(name),
            path=PATHS.map(lambda path: f"{path}/{name}"),  # each tier has its own
            visible_to=st.just("global"),
            gateway_bandwidth=st.just(gateway),
            gateway_shared_by=st.none() if gateway is None else values_of(kinds.Integer(1, 10**7)),
            metadata_ops=st.just(rate),
            bandwidth=values_of(kinds.Bandwidth(1)),
            servers=st.just(servers),
            stripe_count=values_of(kinds.Integer(1, servers)),
            lustre_ost=values_of(kinds.Integer(-1, 10**5)) if placed == "ost" else st.none(),
            lustre_pool=values_of(kinds.Name()) if placed == "pool" else st.none(),
            emulate=st.just(emulated),
            storage=st.sampled_from(["directory", "emulated"] if emulated else ["directory", "memory", "objects"]),
        )
    )
    return replace(tier, credit=0.0, quota_period=0.0) if tier.discipline == "sharing" else tier


@st.composite
def axes(draw: st.DrawFn, real: bool) -> tuple[Axis, ...]:
    leaves = keys.leaf_keys(Study, ["near", "far"])
    swept = [path for path in SWEPT if not (real and path == "workload.train.computation_time")]
    paths = draw(st.lists(st.sampled_from(swept), max_size=2, unique=True))
    return tuple(
        Axis(path, tuple(draw(st.lists(values_of(leaves[path].kind), min_size=1, max_size=3, unique=True))))
        for path in paths
    )


@st.composite
def datasets(draw: st.DrawFn, ranks: int, formats: tuple[str, ...], varies: bool, one_file: bool) -> Dataset:
    name = draw(st.sampled_from(formats))
    length = draw(values_of(kinds.Bytes(1, 2**40)))
    given: dict[str, Any] = {"record_length_bytes": st.just(length)}
    given["record_length_bytes_stdev"] = st.integers(0, length if varies else 0)
    if name == "hdf5":
        given["hdf5"] = section(Hdf5Layout)
    if draw(st.booleans()):
        most = draw(st.integers(1, 2**30))
        given["statistics"] = section(Statistics, file_bytes=st.just(most), read_bytes=st.none() | st.integers(1, most))
    files = 1 if one_file else draw(st.integers(64, 10**9)) + ranks
    dataset: Dataset = draw(
        section(
            Dataset,
            format=st.just(name),
            num_files_train=st.just(files),
            num_samples_per_file=st.integers(ranks if one_file else 1, 10**5),
            **given,
        )
    )
    return dataset


@st.composite
def readers(draw: st.DrawFn, loader: str, direct: bool, collective: bool) -> Reader:
    """Keys that need one another."""
    threads = 0 if collective else draw(st.integers(0, 256))
    preprocess = draw(st.sampled_from(["none", "busy", "decode"]))
    given: dict[str, Any] = {
        "io_engine": "pread",
        "data_loader": loader,
        "odirect": direct,
        "read_threads": threads,
        "preprocess": preprocess,
    }
    if loader != "pytorch":
        given |= {"multiprocessing_context": "spawn", "pin_memory": False}
    if loader in FRAMEWORKS:
        given |= {"read_ahead": "batches", "computation_threads": 0}
    if preprocess != "busy":
        given["preprocess_time"] = 0.0
    if preprocess == "none" or not threads:
        given["computation_threads"] = 0
    accesses = ["shared", "multi"]
    if draw(st.booleans()):
        given |= {"sample_shuffle": "offset", "shuffle": "global"}
        accesses = ["shared"]
    else:
        given["sample_shuffle"] = draw(st.sampled_from(["off", "seed", "random"]))
    given["file_access"] = draw(st.sampled_from(accesses))
    given["rank_reads"] = "share"
    if accesses != ["shared"] and given["file_access"] == "shared" and not collective and draw(st.booleans()):
        given |= {"rank_reads": "all", "shuffle": draw(st.sampled_from(["global", "off"]))}
    if collective:
        given |= {"file_access": "collective", "read_ahead": "batches"}
    reader: Reader = draw(section(Reader, **{name: st.just(value) for name, value in given.items()}))
    return reader


@st.composite
def models(draw: st.DrawFn, reader: Reader, formats: tuple[str, ...]) -> Model:
    """None is trained where what is read is of no use for it."""
    if reader.preprocess == "busy" or (reader.preprocess == "none" and {"jpeg", "png"} & set(formats)):
        return Model(device=draw(st.sampled_from(["auto", "cuda", "cpu"])))
    model: Model = draw(section(Model, network=st.sampled_from(list(NETWORKS))))
    return model


@st.composite
def trainings(draw: st.DrawFn, real: bool) -> Train:
    if real:
        names = ("computation_time", "computation_time_stdev")
        plain: Train = draw(
            section(Train, computation_time_distribution=st.just("constant"), **dict.fromkeys(names, st.just(0.0)))
        )
        return plain
    distribution = draw(st.sampled_from(["constant", "normal", "uniform", "exponential"]))
    spread = draw(st.floats(1e-6, 3600)) if distribution in ("normal", "uniform") else 0.0
    given = {"computation_time_distribution": distribution, "computation_time_stdev": spread}
    train: Train = draw(section(Train, **{name: st.just(value) for name, value in given.items()}))
    return train


@st.composite
def checkpoints(draw: st.DrawFn) -> Checkpoint:
    tier = draw(st.sampled_from([None, "near", "far"]))
    given: dict[str, Any] = {
        "tier": tier,
        "drain": tier == "near" and draw(st.booleans()),
        "transformer": Transformer(),
    }
    if draw(st.booleans()):
        given |= {"zero_stage": 0, "tensor_parallel": 1, "pipeline_parallel": 1, "data_parallel": None}
    else:
        given |= {"mode": "all_ranks", "model_parameters": draw(st.integers(1, 10**14))}
        if draw(st.booleans()):
            shape: Transformer = draw(section(Transformer))
            given["transformer"] = replace(
                shape, num_layers=given.setdefault("pipeline_parallel", draw(st.integers(1, 99)))
            )
    checkpoint: Checkpoint = draw(section(Checkpoint, **{name: st.just(value) for name, value in given.items()}))
    return checkpoint


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """A study that passes every check."""
    # io_uring excludes emulated tiers and reading inline, O_DIRECT the loader in Python, the native one some emulated tiers and formats
    loader, direct = draw(st.sampled_from([("auto", False), ("threads", False), ("auto", True), ("native", True)]))
    # ranks read one file of few formats together, in Python and on real tiers
    collective = not direct and draw(st.integers(0, 5)) == 5
    emulate = st.just(False) if direct or collective else st.booleans()
    formats = FORMATS.where(lambda form: form.natively if direct else not form.mapped)  # whose pages nothing holds up
    if collective:
        formats = FORMATS.where(lambda form: form.collective)
    system = System(
        nodes=draw(st.integers(1, 8)),
        ranks_per_node=draw(st.integers(1, 8)),
        hardware=draw(section(Hardware, accelerator=section(Accelerator))),
        tiers=(draw(tiers("near", emulate)), draw(tiers("far", emulate))),
    )
    reader = draw(readers(loader, direct, collective))
    model = draw(st.just(Model()) | models(reader, formats))
    workload = st.builds(
        Workload,
        dataset=datasets(system.ranks, formats, varies=not direct, one_file=collective),
        reader=st.just(reader),
        train=trainings(real=model.network is not None),
        model=st.just(model),
        checkpoint=checkpoints(),
    )
    # partition needs a local shuffle, clairvoyant files of one sample, first-touch reads in later epochs
    policies = ["pinned", "lru", *(["first-touch"] if reader.read_ahead == "batches" else [])]
    placement = section(Placement, policy=st.sampled_from(policies))
    study: Study = draw(
        section(
            Study, workload=workload, system=st.just(system), placement=placement, sweep=axes(model.network is not None)
        )
    )
    return study
