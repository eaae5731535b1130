"""Names for plain data that leaves the program as JSON, and for the values of a sweep: no room hands another an unnamed dictionary.

`JsonObject` is what a `to_json` function returns: finished output for `json.dumps`, never something that another stage looks into.
"""

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
SweepValue = bool | int | float | str | None
SweepValues = Mapping[str, SweepValue]  # short name of a swept key → its value at one point
