"""DLIO's model and checkpoint keys as `workload.checkpoint`."""

from tierscope.spec.dlio_making import MAPPED, NOTED, REFUSED, Making, Rule, whole
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
_ALONE = "acts in DLIO only where nothing is trained"

_PARAMETERS = (f"{_OURS}.model_parameters",)

RULES = (
    *(Rule(path, MAPPED, "written in fp32, without optimizer", _PARAMETERS) for path in _SIZE),
    *(Rule(path, MAPPED, "of a transformer's weights; others refused", (f"{_OURS}.precision",)) for path in _TYPES),
    *(
        Rule(path, MAPPED, "fp32 of a transformer is adam; others refused", (f"{_OURS}.optimizer",))
        for path in _OPTIMIZERS
    ),
    *(Rule(path, MAPPED, "of a transformer", _PARAMETERS) for path in _LAYERS),
    *(
        Rule(path, REFUSED, "lists of tensors; give model.transformer or model.model_size_bytes", whole=True)
        for path in _LISTS
    ),
    *(Rule(f"model.transformer.{name}", MAPPED, "its parameters are counted", _PARAMETERS) for name in _TRANSFORMER),
    Rule("model.parallelism.tensor", REFUSED, "more than 1: tensor parallelism"),
    Rule("model.parallelism.pipeline", REFUSED, "more than 1: pipeline parallelism"),
    Rule("model.parallelism.data", NOTED, "all ranks are data parallel"),
    Rule("model.parallelism.zero_stage", MAPPED, "above 0 all ranks write", (f"{_OURS}.zero_stage", f"{_OURS}.mode")),
    Rule(
        "checkpoint.checkpoint_folder",
        NOTED,
        "checkpoints go to the last tier; checkpoint.tier of a study names another",
    ),
    Rule(
        "checkpoint.checkpoint_after_epoch",
        MAPPED,
        "with epochs_between_checkpoints, where a multiple of epochs says the same; else refused",
        (f"{_OURS}.epochs_between_checkpoints",),
    ),
    Rule("checkpoint.epochs_between_checkpoints", MAPPED, "as it is", (f"{_OURS}.epochs_between_checkpoints",)),
    Rule(
        "checkpoint.steps_between_checkpoints", MAPPED, "below 1: not by steps", (f"{_OURS}.steps_between_checkpoints",)
    ),
    Rule("checkpoint.type", MAPPED, "rank_zero or all_ranks", (f"{_OURS}.mode",)),
    Rule("checkpoint.mode", REFUSED, "subset: a part of a larger job's checkpoint"),
    Rule("checkpoint.fsync", MAPPED, "as it is; DLIO's default is False", (f"{_OURS}.fsync",)),
    Rule("checkpoint.checkpoint_mechanism_classname", REFUSED, "a class of yours that writes checkpoints"),
    Rule("checkpoint.time_between_checkpoints", NOTED, _ALONE),
    Rule("checkpoint.num_checkpoints_write", NOTED, _ALONE),
    Rule("checkpoint.num_checkpoints_read", NOTED, _ALONE),
    Rule("checkpoint.recovery_rank_shift", NOTED, _ALONE),
    Rule("checkpoint.rank_sync", REFUSED, "True: ranks that wait for one another after a checkpoint"),
    Rule("checkpoint.randomize_tensor", NOTED, "what is written is always random"),
    Rule("checkpoint.ksm", REFUSED, "merging of equal pages in memory", whole=True),
)


def checkpoint(making: Making) -> None:
    """All of it, or a note where no checkpoint is asked for."""
    paths = [rule.path for rule in RULES if rule.path in making.given]
    if not making.flag("workflow.checkpoint"):
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
    _when(making)
    _who(making)
    _what(making)


def _refuse(making: Making) -> None:
    for path in _LISTS:
        if path in making.given and making.given[path].value != []:
            making.refuse(
                path, "lists of tensors cannot be written here; give model.transformer or model.model_size_bytes"
            )
    for name in ("tensor", "pipeline"):
        path = f"model.parallelism.{name}"
        if making.read(path, Integer(1, 10**6), "ways", 1) > 1:
            making.refuse(
                path, f"{name} parallelism is not laid out here; set it to 1, or turn workflow.checkpoint off"
            )
    if making.read("checkpoint.mode", Choice("default", "subset"), "mode", "default") == "subset":
        making.refuse(
            "checkpoint.mode", "a part of a larger job's checkpoint cannot be written alone here; set default"
        )
    if "checkpoint.checkpoint_mechanism_classname" in making.given:
        making.refuse("checkpoint.checkpoint_mechanism_classname", "classes of yours are not loaded; remove it")
    if making.flag("checkpoint.rank_sync"):
        making.refuse("checkpoint.rank_sync", "ranks do not wait for one another after a checkpoint here; set False")
    if "checkpoint.ksm" in making.given:
        making.refuse("checkpoint.ksm", "equal pages in memory are not merged here; remove it")


def _when(making: Making) -> None:
    """By steps, or else after some epochs, of which DLIO has the first and the distance, and we a multiple."""
    steps_path, after_path = "checkpoint.steps_between_checkpoints", "checkpoint.checkpoint_after_epoch"
    between_path = "checkpoint.epochs_between_checkpoints"
    steps = making.read(steps_path, Integer(-1, 10**12), "steps", -1)
    if steps > 0:
        making.put(f"{_OURS}.steps_between_checkpoints", str(steps), making.where(steps_path))
        for path in (after_path, between_path):
            if path in making.given:
                making.note(path, "steps_between_checkpoints is above 0, and DLIO goes by steps then")
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
            "set checkpoint_after_epoch and epochs_between_checkpoints alike",
        )
    making.put(f"{_OURS}.epochs_between_checkpoints", str(first), making.where(between_path))


def _who(making: Making) -> None:
    stage_path, type_path = "model.parallelism.zero_stage", "checkpoint.type"
    stage = making.read(stage_path, Integer(0, 3), "stage of ZeRO", 0)
    if stage:
        making.put(f"{_OURS}.zero_stage", str(stage), making.where(stage_path))
        making.put(f"{_OURS}.mode", "all_ranks", making.where(stage_path))
    if type_path in making.given:
        making.put(f"{_OURS}.mode", making.text(type_path), making.where(type_path))


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
                path, "a transformer needs model.num_layers and model.transformer, else model_size_bytes is written"
            )
    given = [path for path in _SIZE if path in making.given]
    if len(given) > 1:
        making.refuse(given[1], f"{given[0]} says it too; remove one")
    path = given[0] if given else _SIZE[0]
    text = whole(making.text(path, str(_USUAL_BYTES)))
    nbytes = int(text) if text.isdecimal() and 0 < len(text) <= 15 else 0
    if nbytes <= 0:
        making.refuse(path, "must be a number of bytes")
    making.put(f"{_OURS}.model_parameters", str(-(-nbytes // 4)), making.where(path))
    making.put(f"{_OURS}.precision", "fp32", making.where(path))
    making.put(f"{_OURS}.optimizer", "none", making.where(path))
    if making.text("checkpoint.type") == "all_ranks" and given:
        making.note(path, "of every rank in DLIO; here of the whole model, of which each rank writes its part")
    for path in (*_TYPES, *_OPTIMIZERS):
        if path in making.given:
            making.note(path, "model_size_bytes says how much is written")


def _transformer(making: Making, layers: int, where: str) -> None:
    size = {
        name: making.read(f"model.transformer.{name}", Integer(1, 10**9), name, usual)
        for name, usual in _TRANSFORMER.items()
    }
    hidden, inner = size["hidden_size"], size["ffn_hidden_size"]
    shared = hidden * size["num_kv_heads"] // size["num_attention_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * shared + 3 * hidden * inner + 2 * hidden
    parameters = layers * layer + 2 * size["vocab_size"] * hidden + hidden
    making.put(f"{_OURS}.model_parameters", str(parameters), making.where(where))
    for path in _SIZE:
        if path in making.given:
            making.note(path, "model.transformer says how much is written")
    for path in (path for path in _TYPES if path in making.given):
        if making.text(path) not in (*_TWO_BYTES, "fp32"):
            making.refuse(path, "must be fp16, bf16 or fp32")
        precision = "bf16" if making.text(path) in _TWO_BYTES else "fp32"
        making.put(f"{_OURS}.precision", precision, making.where(path))
    for path in (path for path in _OPTIMIZERS if path in making.given):
        if making.text(path) != "fp32":
            making.refuse(path, "the optimizer's state is written in fp32 here; set fp32")
        making.put(f"{_OURS}.optimizer", "adam", making.where(path))
