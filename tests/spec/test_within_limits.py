"""Numbers that were computed, not typed: what is written of them can be read again."""

from dataclasses import replace
from pathlib import Path

from tierscope.commands.calibrate import Calibrated, write_system
from tierscope.predict.calibrate import Calibration, FittedKey
from tierscope.predict.fit import Fit
from tierscope.predict.rates import Parameter
from tierscope.spec.figures import KnownFigure
from tierscope.spec.known import KnownSystem, drawn_systems, dump_system, load_system, parse_system, within_limits
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Tier, Train, Workload

ROUNDING = 1.694e-21  # what is left of the difference of two equal times


def system_with(**numbers: float) -> System:
    return System(tiers=(Tier(name="gfs", path="/data", **numbers),))  # type: ignore[arg-type]


def test_every_number_of_a_system_is_one_that_is_read() -> None:
    system = replace(system_with(metadata_latency=ROUNDING, latency=70.0, bandwidth=1e30), process_overhead=ROUNDING)
    figures = {
        "tiers.gfs.metadata_latency": KnownFigure(ROUNDING, "fitted", "to a run", -ROUNDING, 2 * ROUNDING),
        "tiers.gfs.bandwidth": KnownFigure(1e30, "fitted", "to a run", 1e-6, None),
    }
    draws = ({"tiers.gfs.metadata_latency": 2 * ROUNDING, "tiers.gfs.bandwidth": 1e-6},)
    kept = within_limits(KnownSystem("box", system, figures, draws))
    assert parse_system(dump_system(kept), "box.yaml") == kept
    assert kept.system == system_with(metadata_latency=0.0, latency=60.0, bandwidth=1e21)
    assert kept.figures["tiers.gfs.bandwidth"].low == 1.0
    assert kept.draws == ({"tiers.gfs.metadata_latency": 0.0, "tiers.gfs.bandwidth": 1.0},)


def test_what_is_within_its_limits_stays_as_it_is() -> None:
    system = system_with(metadata_latency=1e-12, latency=60.0, bandwidth=1.0, metadata_ops=0.001)
    known = KnownSystem("box", system, {"nodes": KnownFigure(1, "source", "a book")})
    assert within_limits(known) == known


def test_a_draw_of_what_was_changed_since_stays_within_its_limits() -> None:
    figures = {"tiers.gfs.latency": KnownFigure(1.0, "fitted", "to a run", 0.5, 2.0)}
    known = KnownSystem("box", system_with(latency=1.0), figures, ({"tiers.gfs.latency": 2.0},))
    (drawn,) = drawn_systems(system_with(latency=40.0), known)
    assert drawn.tiers[0].latency == 60.0


def test_what_calibrate_writes_can_be_read(tmp_path: Path) -> None:
    """A fit to results that are met exactly, and to ones that are not met at all."""
    parameters = (
        Parameter("gfs", "bandwidth", 1e3, 0.05, 1e30),
        Parameter("gfs", "metadata_ops", 1e-3, 1e-5, 1.0),
        Parameter("gfs", "latency", 1.0, 1e-6, 100.0),
    )
    workload = Workload(dataset=Dataset(num_files_train=1, record_length_bytes=1), reader=Reader(), train=Train())
    study = Study(study="tiny", workload=workload, system=system_with(), placement=Placement())
    for values, model_error, overhead in (((1e30, 1e-5, 1e-6), 1e-15, ROUNDING), ((0.05, 1.0, 100.0), 1.7, 61.0)):
        fit = Fit(parameters, values, 0.0, (1.0,))
        estimates = tuple(
            FittedKey(parameter, "fitted", value, value / 10, value * 10, 0.0)
            for parameter, value in zip(parameters, values, strict=True)
        )
        found = Calibration(fit, estimates, (values,), (), model_error, overhead, True)
        path = tmp_path / f"{model_error}.yaml"
        write_system(Calibrated("tiny", study, found, (), 2), str(path))
        known = load_system(str(path))
        assert known.system.model_error == (0.0 if model_error < 1 else 1.0)
