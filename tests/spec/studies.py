"""Hypothesis strategies for whole studies, made from the schema: a new key is covered as soon as it is declared."""

from typing import Any

from hypothesis import strategies as st

from tierscope.spec import keys, kinds, schema
from tierscope.spec.study import Axis, Dataset, Placement, Reader, Study, System, Tier, Train, Workload

PATHS = st.text(min_size=1, max_size=20).filter(
    lambda text: text.strip() and not {"\0", "\n", "{", "}"} & set(text)
) | st.sampled_from(
    ["{out}/x", "$HOME/y", "null", "a #b", "x: y", "-", "a ", "'", '"', "d" * 100, "~", "a:", "x\u2028"]
)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True) | st.sampled_from(["null", "1e3", "off"])

# Swept alone, these leave any study possible.
SWEPT = [
    "seed",
    "workload.dataset.format",
    "workload.reader.batch_size",
    "workload.reader.transfer_size",
    "workload.train.computation_time",
    "placement.cache_rate",
    "system.tiers.far.path",
    "system.tiers.far.capacity",
    "system.tiers.far.read_ops",
    "system.tiers.far.variation",
]


def values_of(kind: kinds.Kind) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    """Values that a key of this kind may have."""
    match kind:
        case kinds.Optional(kind=inner):
            return st.none() | values_of(inner)
        case kinds.Integer(_low=low, _high=high):
            return st.integers(int(low or 0), int(high or 2**62))
        case kinds.Bytes(_low=low, _high=high):
            return st.integers(int(low or 0), int(high or 2**63 - 1)) | st.sampled_from([2**20, 10**9, 10**12])
        case kinds.Choice(names=names):
            return st.sampled_from(names)
        case kinds.Flag():
            return st.booleans()
        case kinds.Name():
            return NAMES
        case kinds.PathPattern():
            return PATHS
        case kinds.Bounded(_low=low, _high=high, _above=above):
            bottom = low if low is not None else above
            limits = st.floats(bottom, high, exclude_min=above is not None, allow_infinity=False, allow_nan=False)
            usual = [0.65, 0.1, 0.0015, 1 / 3, 12.5e9, 35000.0]
            fitting = [value for value in usual if (high is None or value <= high) and value >= (bottom or 0)]
            return limits | st.sampled_from(fitting)
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
            emulate=emulate,
        )
    )
    return tier


@st.composite
def axes(draw: st.DrawFn) -> tuple[Axis, ...]:
    leaves = keys.leaf_keys(Study, ["near", "far"])
    paths = draw(st.lists(st.sampled_from(SWEPT), max_size=2, unique=True))
    return tuple(
        Axis(path, tuple(draw(st.lists(values_of(leaves[path].kind), min_size=1, max_size=3, unique=True))))
        for path in paths
    )


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """A study that passes every check."""
    dataset = section(Dataset, num_files_train=st.integers(64, 10**12), num_samples_per_file=st.integers(1, 10**5))
    # io_uring excludes emulated tiers and reading inline, O_DIRECT the loader in Python, the native one some emulated tiers
    loader, direct = draw(st.sampled_from([("auto", False), ("threads", False), ("auto", True), ("native", True)]))
    emulate = st.just(False) if direct else st.booleans()
    reader = section(Reader, io_engine=st.just("pread"), data_loader=st.just(loader), odirect=st.just(direct))
    workload = st.builds(Workload, dataset=dataset, reader=reader, train=section(Train))
    system = st.builds(
        System,
        nodes=st.integers(1, 8),
        ranks_per_node=st.integers(1, 8),
        tiers=st.tuples(tiers("near", emulate), tiers("far", emulate)),
    )
    # partition needs a local shuffle, clairvoyant files of one sample
    placement = section(Placement, policy=st.sampled_from(["pinned", "first-touch", "lru"]))
    study: Study = draw(section(Study, workload=workload, system=system, placement=placement, sweep=axes()))
    return study
