"""The contract of the table: every key of DLIO changes the study, gives a note that names it, or is refused by name."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spec.dlio_files import SMALL, loaded, noted, refusal
from tierscope.errors import SpecError
from tierscope.spec.dlio_keys import RULES
from tierscope.spec.dlio_making import MAPPED, NOTED, REFUSED
from tierscope.spec.dump import differences
from tierscope.spec.load import load

HDF5 = ("dataset.format=hdf5",)
COLLECTIVE = (*HDF5, "dataset.num_files_train=1", "dataset.num_samples_per_file=64", "reader.read_threads=0")
CKPT = ("workflow.checkpoint=True",)
ALONE = (*CKPT, "workflow.train=False", "checkpoint.num_checkpoints_write=3")
AFTER_TWO = ("train.epochs=4", "checkpoint.checkpoint_after_epoch=2")
LLM = (*CKPT, "model.num_layers=2", "model.transformer.hidden_size=64")


@dataclass(frozen=True)
class Case:
    """`value` of the key on top of `others` changes our key `to` (or Wanted's field), is noted, or is refused.

    `base`: to compare with, where `others` alone cannot be.
    """

    value: str
    to: str = ""
    others: tuple[str, ...] = ()
    refused: bool = False
    base: tuple[str, ...] | None = None


def no(value: str, *others: str) -> Case:
    return Case(value, "", others, refused=True)


NOTE = Case("1")
CASES: dict[str, list[Case]] = {
    "model.name": [Case("other", "study")],
    "model.type": [NOTE],
    "model.model_size_bytes": [Case("4000", "workload.checkpoint.model_parameters", CKPT), no("x", *CKPT)],
    "model.model_size": [Case("4000", "workload.checkpoint.model_parameters", CKPT)],
    "checkpoint.model_size": [Case("4000", "workload.checkpoint.model_parameters", CKPT)],
    "model.model_datatype": [
        Case("fp32", "workload.checkpoint.precision", LLM),
        no("int8", *LLM),
        Case("fp16", "", CKPT),
    ],
    "checkpoint.model_datatype": [Case("fp32", "workload.checkpoint.precision", LLM), no("int8", *LLM)],
    "model.optimizer_datatype": [no("fp16", *LLM), Case("fp32", "", CKPT)],
    "checkpoint.optimizer_datatype": [no("fp16", *LLM), Case("fp32", "", CKPT)],
    "model.num_layers": [Case("3", "workload.checkpoint.model_parameters", LLM), Case("3", "", CKPT)],
    "checkpoint.num_layers": [
        Case("3", "workload.checkpoint.model_parameters", (*CKPT, "model.transformer.hidden_size=64"))
    ],
    **{
        f"{part}.{name}": [no("[1024, 2048]", *CKPT), Case("[1024, 2048]")]
        for part in ("model", "checkpoint")
        for name in ("optimization_groups", "layer_parameters")
    },
    **{
        f"model.transformer.{name}": [Case(value, "workload.checkpoint.model_parameters", LLM), no("x", *LLM)]
        for name, value in (
            ("hidden_size", "128"),
            ("ffn_hidden_size", "99"),
            ("vocab_size", "99"),
            ("num_attention_heads", "2"),
            ("num_kv_heads", "2"),
        )
    },
    "model.parallelism.tensor": [Case("2", "workload.checkpoint.tensor_parallel", CKPT), no("x", *CKPT), NOTE],
    "model.parallelism.pipeline": [Case("2", "workload.checkpoint.pipeline_parallel", CKPT), no("x", *CKPT), NOTE],
    "model.parallelism.data": [
        Case("2", "", CKPT),
        Case("2", "workload.checkpoint.data_parallel", (*CKPT, "model.parallelism.tensor=2")),
    ],
    "model.parallelism.zero_stage": [
        Case("3", "workload.checkpoint.zero_stage", CKPT),
        Case("3", "workload.checkpoint.mode", CKPT),
        no("4", *CKPT),
    ],
    "framework": [Case("pytorch"), Case("tensorflow"), no("jax")],
    "workflow.generate_data": [Case("True"), no("maybe")],
    "workflow.train": [
        Case("False", "workload.dataset.format", (*CKPT, "checkpoint.num_checkpoints_write=3")),
        Case("False"),
        no("False", "workflow.generate_data=False"),
        no("False", *CKPT),
    ],
    "workflow.evaluation": [no("True"), Case("False")],
    "workflow.checkpoint": [Case("True", "workload.checkpoint.epochs_between_checkpoints"), no("maybe")],
    "workflow.profiling": [no("True"), Case("False")],
    "workflow.debug": [Case("False"), no("maybe")],
    "evaluation.eval_time": [Case("0.5"), Case("{mean: 1}")],
    "evaluation.eval_time_stdev": [NOTE],
    "evaluation.eval_after_epoch": [NOTE],
    "evaluation.epochs_between_evals": [NOTE],
    "profiling.profiler": [Case("iostat")],
    "profiling.iostat_devices": [Case("[sda, sdb]"), Case("sda")],
    "output.folder": [Case("out")],
    "output.log_file": [Case("dlio.log")],
    "output.metric.exclude_start_steps": [Case("3", "exclude_start_steps"), no("-1")],
    "output.metric.exclude_end_steps": [Case("3", "exclude_end_steps"), no("x")],
    "metric.au": [Case("0.7", "au"), no("70")],
    "storage.storage_type": [Case("local_fs"), Case("local"), no("s3"), no("aistore"), no("tape")],
    "storage.storage_root": [Case("/mnt/x", "system.tiers.gfs.path"), no("s3://bucket"), no("../x")],
    "storage.storage_options": [no("{region: x}")],
    "storage.storage_library": [no("s3torchconnector")],
    "storage.post_generation_settle_seconds": [NOTE],
    "hydra": [Case("{run: {dir: x}}")],
    "defaults": [no("[_self_]")],
    "dataset.data_folder": [
        Case("data/x", "system.tiers.gfs.path"),
        Case("/mnt/x", "system.tiers.gfs.path"),
        no("s3://x"),
    ],
    "dataset.format": [
        Case("npz", "workload.dataset.format"),
        no("indexed_binary"),
        no("mmap_indexed_binary"),
        no("zarr"),
    ],
    "dataset.num_files_train": [Case("128", "workload.dataset.num_files_train"), no("many")],
    "dataset.num_files_eval": [NOTE],
    "dataset.num_samples_per_file": [Case("2", "workload.dataset.num_samples_per_file")],
    "dataset.record_length_bytes": [Case("1000", "workload.dataset.record_length_bytes")],
    "dataset.record_length": [Case("1000.4", "workload.dataset.record_length_bytes")],
    "dataset.record_length_bytes_stdev": [Case("10", "workload.dataset.record_length_bytes_stdev")],
    "dataset.record_length_stdev": [Case("10.6", "workload.dataset.record_length_bytes_stdev")],
    "dataset.record_length_bytes_resize": [NOTE],
    "dataset.record_length_resize": [NOTE],
    "dataset.record_dims": [
        Case("[30, 40]", "workload.dataset.record_length_bytes"),
        no("[0]"),
        no("{a: 1}"),
        no("[[2]]"),
    ],
    "dataset.record_element_type": [
        Case("float32", "workload.dataset.record_length_bytes", ("dataset.record_dims=[7]",)),
        Case("float32"),
        no("float7", "dataset.record_dims=[7]"),
    ],
    "dataset.record_element_bytes": [NOTE],
    "dataset.num_subfolders_train": [Case("4", "workload.dataset.num_subfolders_train")],
    "dataset.num_subfolders_eval": [NOTE],
    "dataset.compression": [
        Case("gzip", "workload.dataset.hdf5.compression", HDF5),
        no("bz2", *HDF5),
        no("zip"),
        Case("none"),
    ],
    "dataset.compression_level": [
        Case("9", "workload.dataset.hdf5.compression_level", (*HDF5, "dataset.compression=gzip")),
        Case("9"),
    ],
    "dataset.enable_chunking": [
        Case("True", "workload.dataset.hdf5.chunk_size", (*HDF5, "dataset.chunk_size=1024")),
        Case("True"),
        no("True", *HDF5),
    ],
    "dataset.chunk_size": [
        Case("1024", "workload.dataset.hdf5.chunk_size", (*HDF5, "dataset.enable_chunking=True"), base=HDF5),
        Case("1024"),
        Case("1024", "", HDF5),
    ],
    "dataset.hdf5.chunk_dims": [
        Case("[8, 8]", "workload.dataset.hdf5.chunk_size", HDF5),
        Case("[8, 8]"),
        no("x", *HDF5),
    ],
    "dataset.hdf5.num_dset_per_record": [no("2"), NOTE],
    "dataset.hdf5.max_shape": [Case("[8, 8]")],
    "dataset.file_prefix": [Case("part")],
    "dataset.keep_files": [Case("False")],
    "dataset.generation_buffer_size": [NOTE],
    "dataset.data_gen_method": [Case("numpy")],
    "dataset.parquet.columns": [no("[{name: a}]")],
    "dataset.parquet.read_mode": [no("row_group")],
    "dataset.parquet.row_group_size": [no("10")],
    "dataset.parquet.partition_by": [no("a")],
    "dataset.parquet.generation_batch_size": [NOTE],
    "reader.data_loader": [
        Case("pytorch"),
        Case("tensorflow"),
        Case("synthetic", "workload.dataset.format"),
        *(no(name) for name in ("dali", "native_dali", "custom", "none", "daos_pytorch", "torch")),
    ],
    "reader.data_loader_classname": [no("a.B")],
    "reader.reader_classname": [no("a.B")],
    "reader.data_loader_sampler": [Case("index")],
    "reader.batch_size": [Case("2", "workload.reader.batch_size")],
    "reader.batch_size_eval": [NOTE],
    "reader.read_threads": [Case("4", "workload.reader.read_threads"), Case("0", "workload.reader.read_threads")],
    "reader.computation_threads": [
        Case("2", "workload.reader.computation_threads", ("reader.preprocess_time=0.1",)),
        Case("2"),
    ],
    "reader.prefetch_size": [Case("4", "workload.reader.prefetch_size")],
    "reader.file_shuffle": [Case("seed", "workload.reader.file_shuffle"), no("always")],
    "reader.sample_shuffle": [Case("random", "workload.reader.sample_shuffle"), no("always")],
    "reader.shuffle_size": [NOTE],
    "reader.file_access": [
        Case("multi", "workload.reader.file_access"),
        Case("collective", "workload.reader.file_access", COLLECTIVE),
        no("collective"),
        no("mpio"),
        no("any"),
    ],
    "reader.read_type": [Case("memory", "workload.reader.read_ahead"), no("never")],
    "reader.transfer_size": [Case("4096", "workload.reader.transfer_size"), no("1")],
    "reader.odirect": [Case("True", "workload.reader.odirect"), no("perhaps")],
    "reader.preprocess_time": [
        Case("0.1", "workload.reader.preprocess"),
        Case("{mean: 0.1}", "workload.reader.preprocess_time"),
        Case("0"),
        no("{min: 0, max: 1, type: uniform}"),
    ],
    "reader.preprocess_time_stdev": [no("0.1", "reader.preprocess_time=1"), Case("0")],
    "reader.dont_use_mmap": [Case("True")],
    "reader.multiprocessing_context": [Case("spawn")],
    "reader.pin_memory": [Case("True")],
    "reader.write_threads": [NOTE],
    "reader.transformed_record_dims": [Case("[8, 8]")],
    "reader.transformed_record_element_type": [Case("uint8")],
    "train.epochs": [Case("4", "workload.train.epochs"), no("0")],
    "train.computation_time": [
        Case("0.5", "workload.train.computation_time"),
        Case("{mean: 1, stdev: 0.1}", "workload.train.computation_time_stdev"),
        Case("{min: 1, max: 2, type: uniform}", "workload.train.computation_time_distribution"),
        Case("{scale: 1, type: exponential}", "workload.train.computation_time_distribution"),
        no("{shape: 1, scale: 1, type: gamma}"),
        no("{lam: 1, type: poisson}"),
        no("[1, 2]"),
    ],
    "train.computation_time_stdev": [
        Case("0.1", "workload.train.computation_time_stdev", ("train.computation_time=1",)),
        no("0.1", "train.computation_time={scale: 1, type: exponential}"),
    ],
    "train.total_training_steps": [Case("5", "workload.train.total_training_steps"), no("-7")],
    "train.seed_change_epoch": [Case("False", "workload.train.seed_change_epoch")],
    "train.seed": [Case("7", "seed")],
    "checkpoint.checkpoint_folder": [Case("ckpt", "", CKPT), Case("ckpt")],
    "checkpoint.checkpoint_after_epoch": [
        Case("2", "workload.checkpoint.epochs_between_checkpoints", (*CKPT, "train.epochs=2")),
        Case("4", "workload.checkpoint.epochs_between_checkpoints", (*CKPT, "train.epochs=3")),
        no("2", *CKPT, "train.epochs=4"),
    ],
    "checkpoint.epochs_between_checkpoints": [
        Case("2", "workload.checkpoint.epochs_between_checkpoints", (*CKPT, *AFTER_TWO), base=CKPT),
        Case("2", "", (*CKPT, "checkpoint.steps_between_checkpoints=5")),
    ],
    "checkpoint.steps_between_checkpoints": [
        Case("5", "workload.checkpoint.steps_between_checkpoints", CKPT),
        no("x", *CKPT),
    ],
    "checkpoint.type": [Case("all_ranks", "workload.checkpoint.mode", CKPT), no("some", *CKPT)],
    "checkpoint.mode": [
        no("subset", *CKPT),
        Case("subset", "workload.checkpoint.data_parallel", (*CKPT, "model.parallelism.data=4")),
        Case("default"),
    ],
    "checkpoint.fsync": [Case("True", "workload.checkpoint.fsync", CKPT)],
    "checkpoint.checkpoint_mechanism_classname": [no("a.B", *CKPT)],
    "checkpoint.time_between_checkpoints": [Case("5", "", CKPT), Case("5", "workload.train.computation_time", ALONE)],
    "checkpoint.num_checkpoints_write": [
        Case("5", "", CKPT),
        Case("5", "workload.train.total_training_steps", ALONE),
        no("0", *CKPT, "workflow.train=False"),
    ],
    "checkpoint.num_checkpoints_read": [Case("5", "", CKPT), Case("1", "workload.checkpoint.verify", ALONE)],
    "checkpoint.recovery_rank_shift": [Case("True", "", CKPT)],
    "checkpoint.rank_sync": [no("True", *CKPT)],
    "checkpoint.randomize_tensor": [Case("True", "", CKPT)],
    "checkpoint.ksm": [no("{await_time: 3}", *CKPT), Case("{await_time: 3}")],
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def override(key: str, value: str) -> str:
    return f"++hydra.run.dir={value}" if key == "hydra" else f"++workload.{key}={value}"


def settings_of(others: tuple[str, ...]) -> list[str]:
    return [f"++workload.{other}" for other in others]


def test_every_key_of_the_table_has_a_case() -> None:
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize(("key", "case"), [(key, case) for key, cases in CASES.items() for case in cases])
def test_no_key_is_ignored(small: Path, key: str, case: Case) -> None:
    others = settings_of(case.others)
    setting = override(key, case.value)
    if case.refused:
        line = refusal(small, *others, setting)
        assert line.startswith((setting, str(small)))
        assert key.rpartition(".")[2].partition("=")[0] in line
        return
    after = loaded(small, *others, setting)
    if not case.to:
        assert noted(after.notes, key), after.notes
        return
    before = loaded(small, *settings_of(case.others if case.base is None else case.base))
    changed = [line.partition(":")[0] for line in differences(before.study, after.study)]
    wanted = [
        name
        for name in ("au", "exclude_start_steps", "exclude_end_steps")
        if getattr(before.wanted, name) != getattr(after.wanted, name)
    ]
    assert case.to in [*changed, *wanted]


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_table_says_what_its_cases_do(rule: object) -> None:
    assert isinstance(rule, type(next(iter(RULES.values()))))
    cases = CASES[rule.path]
    kinds = {REFUSED: any(case.refused for case in cases), NOTED: not all(case.refused for case in cases), MAPPED: True}
    assert kinds[rule.does]
    if rule.does == NOTED:
        assert not rule.to
        assert not any(case.to for case in cases)
    assert rule.says


def test_keys_that_need_no_checkpoint_say_so_without_one(small: Path) -> None:
    notes = loaded(small, "++workload.model.model_size_bytes=4000", "++workload.checkpoint.type=all_ranks").notes
    assert any("workflow.checkpoint is off" in note and noted([note], "checkpoint.type") for note in notes)


def parquet(columns: str, length: int = 44, **more: str) -> str:
    lines = [f"    {key}: {value}" for key, value in more.items()]
    return "\n".join(
        [
            "dataset:",
            "  format: parquet",
            f"  record_length: {length}",
            "  parquet:",
            *lines,
            f"    columns: {columns}",
        ]
    )


A, B = "{name: a, dtype: float32, size: 10}", "{name: b, dtype: float16, size: 2}"


def test_columns_that_are_all_read_are_bytes_of_a_sample(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(parquet(f"[{A}, {B}]"))
    found = load(str(tmp_path / "w.yaml"))
    assert found.study.workload.dataset.record_length_bytes == 44
    assert any(note.startswith("dataset.parquet.columns: samples are one column") for note in found.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (parquet(f"[{A}, {B}]", 45), "do not add up to dataset.record_length_bytes"),
        (parquet("[{name: a}]"), "do not add up to dataset.record_length_bytes"),
        (parquet("[{name: a, dtype: float32, size: 11, read: false}]"), "reads chosen columns of row groups"),
        (parquet(f"[{A}, {B}]", row_group_size="6144", read_mode="row_group"), "reads chosen columns of row groups"),
    ],
)
def test_columns_of_other_bytes_are_refused_with_what_to_do(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=words):
        load(str(path))
    whole = load(str(path), ["++workload.dataset.parquet=null"])
    assert whole.study.workload.dataset.format == "parquet"
