"""What a study may ask for that only the native loader does, refused where that loader will not do."""

from tierscope.errors import UserError
from tierscope.loaders import LOADERS
from tierscope.spec.study import Reader

IN_C = LOADERS.where(lambda loader: loader.in_c)


def refuse_native(reader: Reader, why: str, otherwise: str, loaders: str = "auto") -> None:
    """`why` follows the key and its value; `otherwise` is the other way out."""
    asked = [
        ("data_loader", reader.data_loader in IN_C, reader.data_loader, loaders),
        ("odirect", reader.odirect, "true", "false"),
        ("io_engine", reader.io_engine == "uring", "uring", "pread"),
    ]
    for key, given, value, fix in asked:
        if given:
            raise UserError(f"workload.reader.{key} = {value}, but {why}; set {key}: {fix}, or {otherwise}")
