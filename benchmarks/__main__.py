"""Runs all benchmarks, or those that are named, prints a line each and writes bench.json. Exit code 1 if a goal was missed.

With --beside COMMIT: this version beside that one instead.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

from benchmarks.beside import beside
from benchmarks.common import Result
from benchmarks.dlio import dlio
from benchmarks.emulation import emulation
from benchmarks.generation import generation
from benchmarks.imports import imports
from benchmarks.memory import memory
from benchmarks.peers import peers
from benchmarks.reading import reading
from benchmarks.shim import shim
from benchmarks.simulation import scale, simulation
from benchmarks.startup import startup
from benchmarks.whatif import whatif
from tierscope.trace.provenance import provenance

BENCHMARKS: dict[str, Callable[[], Iterator[Result]]] = {
    "reading": reading,
    "peers": peers,
    "dlio": dlio,
    "shim": shim,
    "generation": generation,
    "emulation": emulation,
    "memory": memory,
    "startup": startup,
    "whatif": whatif,
    "imports": imports,
    "simulation": simulation,
}
ON_REQUEST: dict[str, Callable[[], Iterator[Result]]] = {"scale": scale}  # minutes, and no goals


def main(names: list[str]) -> int:
    known = {**BENCHMARKS, **ON_REQUEST}
    if names[:1] == ["--beside"]:
        (commit,) = names[1:]
        names, known = ["beside"], {"beside": partial(beside, commit)}
    results: dict[str, list[dict[str, object]]] = {}
    missed = 0
    for name in names or BENCHMARKS:
        print(f"— {name}", flush=True)
        results[name] = []
        for result in known[name]():
            print(result.line(), flush=True)
            results[name].append(result.as_json())
            missed += result.met is False
    with open("bench.json", "w", encoding="utf-8") as out:
        json.dump(
            {"schema_version": 1, "provenance": asdict(provenance("local", {})), "results": results}, out, indent=1
        )
    print(f"{missed} goals missed" if missed else "all goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
