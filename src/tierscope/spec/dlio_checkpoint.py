"""DLIO's model and checkpoint keys as `workload.checkpoint`."""

from tierscope.spec.dlio_making import MAPPED, NOTED, REFUSED, Making, Rule, amount, whole
from tierscope.spec.kinds import Choice, Integer
from tierscope.units import counted

_OURS = "workload.checkpoint"
_SIZE = ("model.model_size_bytes", "model.model_size", "checkpoint.model_size")
_TYPES = ("model.model_datatype", "checkpoint.model_datatype")
_OPTIMIZERS = ("model.optimizer_datatype", "checkpoint.optimizer_datatype")
_LAYERS = ("model.num_layers", "checkpoint.num_layers")
_LISTS = tuple(
    f"{part}.{name}" for part in ("model", "checkpoint") for name in ("optimization_groups", "layer_parameters")
)
_TRANSFORMER = {  # with DLIO's defaults
    "hidden_size": 2048,
    "ffn_hidden_size": 8192,
    "vocab_size": 32000,
    "num_attention_heads": 32,
    "num_kv_heads": 8,
}
_USUAL_BYTES = 10240  # DLIO's default of model_size_bytes
_TWO_BYTES = ("fp16", "bf16")
_OFF = "workflow.checkpoint is off, so nothing is written"
_ALONE = "affects DLIO only without training"
_MOST_RANKS = 1_000_000  # samples of every step, where nothing is trained: a rank needs one

_PARAMETERS = (f"{_OURS}.model_parameters",)
_SHAPE = f"{_OURS}.transformer"

RULES = (
    *(Rule(path, MAPPED, "written in fp32, without optimizer", _PARAMETERS) for path in _SIZE),
    *(
        Rule(path, MAPPED, "for weights of a transformer; others are rejected", (f"{_OURS}.precision",))
        for path in _TYPES
    ),
    *(
        Rule(path, MAPPED, "fp32 of a transformer means adam; others are rejected", (f"{_OURS}.optimizer",))
        for path in _OPTIMIZERS
    ),
    *(Rule(path, MAPPED, "of a transformer", _PARAMETERS) for path in _LAYERS),
    *(
        Rule(path, REFUSED, "lists of tensors; give model.transformer or model.model_size_bytes", whole=True)
        for path in _LISTS
    ),
    *(
        Rule(f"model.transformer.{name}", MAPPED, "its parameters are counted", (*_PARAMETERS, f"{_SHAPE}.{name}"))
        for name in _TRANSFORMER
    ),
    Rule("model.parallelism.tensor", MAPPED, "of a transformer", (f"{_OURS}.tensor_parallel",)),
    Rule("model.parallelism.pipeline", MAPPED, "of a transformer", (f"{_OURS}.pipeline_parallel",)),
    Rule(
        "model.parallelism.data",
        MAPPED,
        "for split models, or mode: subset; otherwise all ranks are data parallel",
        (f"{_OURS}.data_parallel",),
    ),
    Rule("model.parallelism.zero_stage", MAPPED, "above 0 all ranks write", (f"{_OURS}.zero_stage", f"{_OURS}.mode")),
    Rule(
        "checkpoint.checkpoint_folder",
        NOTED,
        "checkpoints go to the last tier; checkpoint.tier of a study names another",
    ),
    Rule(
        "checkpoint.checkpoint_after_epoch",
        MAPPED,
        "with epochs_between_checkpoints, if equivalent to a multiple of epochs; otherwise rejected",
        (f"{_OURS}.epochs_between_checkpoints",),
    ),
    Rule("checkpoint.epochs_between_checkpoints", MAPPED, "as it is", (f"{_OURS}.epochs_between_checkpoints",)),
    Rule(
        "checkpoint.steps_between_checkpoints", MAPPED, "below 1: not by steps", (f"{_OURS}.steps_between_checkpoints",)
    ),
    Rule("checkpoint.type", MAPPED, "rank_zero or all_ranks", (f"{_OURS}.mode",)),
    Rule(
        "checkpoint.mode",
        MAPPED,
        "subset: rank r of R writes shard r of R of a larger job's",
        (f"{_OURS}.data_parallel",),
    ),
    Rule("checkpoint.fsync", MAPPED, "as it is; DLIO's default is False", (f"{_OURS}.fsync",)),
    Rule("checkpoint.checkpoint_mechanism_classname", REFUSED, "your own checkpoint class"),
    Rule(
        "checkpoint.time_between_checkpoints",
        MAPPED,
        "without training: time per step",
        ("workload.train.computation_time",),
    ),
    Rule(
        "checkpoint.num_checkpoints_write",
        MAPPED,
        "without training: number of steps",
        ("workload.train.total_training_steps",),
    ),
    Rule(
        "checkpoint.num_checkpoints_read",
        MAPPED,
        "without training: the last one is read back",
        (f"{_OURS}.verify",),
    ),
    Rule("checkpoint.recovery_rank_shift", NOTED, "each file is read back by its writer"),
    Rule("checkpoint.rank_sync", REFUSED, "True: ranks synchronise after a checkpoint"),
    Rule("checkpoint.randomize_tensor", NOTED, "the data is always random"),
    Rule("checkpoint.ksm", REFUSED, "merging of equal pages in memory", whole=True),
)


def checkpoint(making: Making) -> None:
    """All of it, or a note where no checkpoint is asked for."""
    paths = [rule.path for rule in RULES if rule.path in making.given]
    trains = making.flag("workflow.train", default=True)
    if not making.flag("workflow.checkpoint"):
        making.generates_only = not trains
        if not trains and "workflow.generate_data" in making.given and not making.flag("workflow.generate_data"):
            making.refuse(
                "workflow.train",
                "training, checkpoints and generate_data are all off; enable one of them",
            )
        if not trains:
            making.note("workflow.train", "no training: data is only generated")
        for path in paths:
            making.note(path, _OFF)
        return
    _refuse(making)
    for rule in RULES:
        if rule.does == NOTED and rule.path in making.given:
            making.note(rule.path, rule.says)
    making.put(
        f"{_OURS}.fsync", "true" if making.flag("checkpoint.fsync") else "false", making.where("checkpoint.fsync")
    )
    if trains:
        _when(making)
        for path in ("time_between_checkpoints", "num_checkpoints_write", "num_checkpoints_read"):
            if f"checkpoint.{path}" in making.given:
                making.note(f"checkpoint.{path}", _ALONE)
    else:
        _checkpoints_only(making)
    _who(making)
    _what(making)


def _checkpoints_only(making: Making) -> None:
    """Nothing is trained and nothing read: steps that take as long as there is between two checkpoints, and one after each."""
    count_path, pause_path = "checkpoint.num_checkpoints_write", "checkpoint.time_between_checkpoints"
    steps = making.read(count_path, Integer(-1, 10**9), "checkpoints", -1)
    reads = making.read("checkpoint.num_checkpoints_read", Integer(-1, 10**9), "checkpoints", -1)
    if steps < 1:
        path = count_path if count_path in making.given else "workflow.train"
        making.refuse(path, "no training and no checkpoints; set checkpoint.num_checkpoints_write")
    pause = amount(pause_path, making.given[pause_path]) if pause_path in making.given else 0.0
    where = making.where(count_path)
    for path in ("dataset", "reader"):
        if given := next((key for key in making.given if key.startswith(f"{path}.")), None):
            making.note(given, "no training, so nothing is read")
    for path, value in (
        ("workload.dataset.format", "synthetic"),
        ("workload.dataset.num_files_train", "1"),
        ("workload.dataset.num_samples_per_file", str(steps * _MOST_RANKS)),
        ("workload.dataset.record_length_bytes", "1"),
        ("workload.reader.batch_size", "1"),
        ("workload.reader.read_threads", "0"),
        ("workload.reader.prefetch_size", "0"),
        ("workload.train.epochs", "1"),
        ("workload.train.total_training_steps", str(steps)),
        ("workload.train.computation_time", repr(pause)),
        (f"{_OURS}.steps_between_checkpoints", "1"),
        (f"{_OURS}.verify", "true" if reads > 0 else "false"),
    ):
        making.put(path, value, where)
    if reads > 1:
        making.note("checkpoint.num_checkpoints_read", "the last one is read back, once")


def _refuse(making: Making) -> None:
    for path in _LISTS:
        if path in making.given and making.given[path].value != []:
            making.refuse(path, "lists of tensors are not supported; set model.transformer or model.model_size_bytes")
    if "checkpoint.checkpoint_mechanism_classname" in making.given:
        making.refuse("checkpoint.checkpoint_mechanism_classname", "your own classes are not loaded; remove it")
    if making.flag("checkpoint.rank_sync"):
        making.refuse("checkpoint.rank_sync", "synchronising after a checkpoint is not supported; set False")
    if "checkpoint.ksm" in making.given:
        making.refuse("checkpoint.ksm", "merging equal memory pages is not supported; remove it")


def _when(making: Making) -> None:
    """By steps, or else after some epochs, of which DLIO has the first and the distance, and we a multiple."""
    steps_path, after_path = "checkpoint.steps_between_checkpoints", "checkpoint.checkpoint_after_epoch"
    between_path = "checkpoint.epochs_between_checkpoints"
    steps = making.read(steps_path, Integer(-1, 10**12), "steps", -1)
    if steps > 0:
        making.put(f"{_OURS}.steps_between_checkpoints", str(steps), making.where(steps_path))
        for path in (after_path, between_path):
            if path in making.given:
                making.note(path, "steps_between_checkpoints is above 0, which takes precedence in DLIO")
        return
    epochs = making.read("train.epochs", Integer(1, 10**6), "epochs", 1)
    first = making.read(after_path, Integer(1, 10**6), "epoch of the first checkpoint", 1)
    between = making.read(between_path, Integer(1, 10**6), "epochs between two checkpoints", 1)
    if first > epochs:
        making.note(
            after_path,
            f"there {'is' if epochs == 1 else 'are'} {counted(epochs, 'epoch')}, so no checkpoint is written",
        )
        return
    if first != between and min(first, between) + first <= epochs:
        path = after_path if after_path in making.given else between_path
        making.refuse(
            path,
            f"the first checkpoint comes after epoch {first} and the next ones {between} apart; "
            "set checkpoint_after_epoch and epochs_between_checkpoints to the same value",
        )
    making.put(f"{_OURS}.epochs_between_checkpoints", str(first), making.where(between_path))


def _who(making: Making) -> None:
    stage_path, type_path = "model.parallelism.zero_stage", "checkpoint.type"
    stage = making.read(stage_path, Integer(0, 3), "stage of ZeRO", 0)
    if stage:
        making.put(f"{_OURS}.zero_stage", str(stage), making.where(stage_path))
        making.put(f"{_OURS}.mode", "all_ranks", making.where(stage_path))
    if _split(making):
        if type_path in making.given:
            making.note(type_path, "a split model is written by all ranks that hold a part")
    elif type_path in making.given:
        making.put(f"{_OURS}.mode", making.text(type_path), making.where(type_path))


def _split(making: Making) -> bool:
    """Tensor, pipeline and data parallelism; whether the model is split over ranks by them."""
    ways = {
        name: making.read(f"model.parallelism.{name}", Integer(-1, 10**5), "ways", 1)
        for name in ("tensor", "pipeline", "data")
    }
    data_path, mode_path = "model.parallelism.data", "checkpoint.mode"
    subset = making.read(mode_path, Choice("default", "subset"), "mode", "default") == "subset"
    if subset and (data_path not in making.given or ways["data"] < 1):
        making.refuse(mode_path, "model.parallelism.data is not set, so the size of the job is unknown; add it")
    if ways["tensor"] * ways["pipeline"] <= 1 and not subset:
        if data_path in making.given:
            making.note(data_path, "all ranks are data parallel")
        return False
    for name in ("tensor", "pipeline"):
        making.put(f"{_OURS}.{name}_parallel", str(max(1, ways[name])), making.where(f"model.parallelism.{name}"))
    if data_path in making.given and ways["data"] >= 1:
        making.put(f"{_OURS}.data_parallel", str(ways["data"]), making.where(data_path))
    making.put(f"{_OURS}.mode", "all_ranks", making.where("model.parallelism.tensor"))
    return True


def _what(making: Making) -> None:
    names = [f"model.transformer.{name}" for name in _TRANSFORMER]
    layers_path = next((path for path in _LAYERS if path in making.given), _LAYERS[0])
    layers = making.read(layers_path, Integer(-1, 10**5), "layers", -1)
    if layers > 0 and any(path in making.given for path in names):
        _transformer(making, layers, layers_path)
        return
    for path in (*names, *_LAYERS):
        if path in making.given:
            making.note(
                path,
                "a transformer needs model.num_layers and model.transformer; otherwise model_size_bytes is written",
            )
    given = [path for path in _SIZE if path in making.given]
    if len(given) > 1:
        making.refuse(given[1], f"{given[0]} sets it too; remove one")
    path = given[0] if given else _SIZE[0]
    text = whole(making.text(path, str(_USUAL_BYTES)))
    nbytes = int(text) if text.isdecimal() and 0 < len(text) <= 15 else 0
    if nbytes <= 0:
        making.refuse(path, "must be a number of bytes")
    making.put(f"{_OURS}.model_parameters", str(-(-nbytes // 4)), making.where(path))
    making.put(f"{_OURS}.precision", "fp32", making.where(path))
    making.put(f"{_OURS}.optimizer", "none", making.where(path))
    if making.text("checkpoint.type") == "all_ranks" and given:
        making.note(path, "per rank in DLIO; here for the whole model, of which each rank writes its part")
    for path in (*_TYPES, *_OPTIMIZERS):
        if path in making.given:
            making.note(path, "model_size_bytes sets how much is written")


def _transformer(making: Making, layers: int, where: str) -> None:
    size = {
        name: making.read(f"model.transformer.{name}", Integer(1, 10**9), name, usual)
        for name, usual in _TRANSFORMER.items()
    }
    hidden, inner = size["hidden_size"], size["ffn_hidden_size"]
    shared = hidden * size["num_kv_heads"] // size["num_attention_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * shared + 3 * hidden * inner + 2 * hidden
    parameters = layers * layer + 2 * size["vocab_size"] * hidden + hidden
    for name, value in {"num_layers": layers, **size}.items():
        making.put(f"{_OURS}.transformer.{name}", str(value), making.where(where))
    making.put(f"{_OURS}.model_parameters", str(parameters), making.where(where))
    for path in _SIZE:
        if path in making.given:
            making.note(path, "model.transformer sets how much is written")
    for path in (path for path in _TYPES if path in making.given):
        if making.text(path) not in (*_TWO_BYTES, "fp32"):
            making.refuse(path, "must be fp16, bf16 or fp32")
        precision = "bf16" if making.text(path) in _TWO_BYTES else "fp32"
        making.put(f"{_OURS}.precision", precision, making.where(path))
    for path in (path for path in _OPTIMIZERS if path in making.given):
        if making.text(path) != "fp32":
            making.refuse(path, "optimizer state is always written in fp32; set fp32")
        making.put(f"{_OURS}.optimizer", "adam", making.where(path))
