"""One rank of an MPI job that reads a file together with the others: `collective.py read|truncated|gone OUT key=value …`.

`read`: rank 0 prints, of every rank, the samples that it got and whether all their bytes are right, and operations and bytes by tier. The others: a run
on a file that was spoilt after it was staged.
"""

import json
import os
import sys
from dataclasses import replace

from tests.small_study import node_source, plan_of, small_study, stage, tier_files, totals
from tierscope.bench.loading import make_loader
from tierscope.bench.mpi import MpiCrew, connect, serve
from tierscope.bench.mpi_files import together
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.run import RunTask
from tierscope.dataset import content
from tierscope.loaders.choose import choose_loader
from tierscope.plan.sizes import SampleSizes
from tierscope.spec.study import Study
from tierscope.trace.recorder import Recording


def read(study: Study, out: str, rank: int) -> dict[str, object]:
    sizes = SampleSizes.of(study.workload.dataset, study.seed, ragged=True)
    node = rank // study.system.ranks_per_node
    ways = together(study, rank)
    source = replace(node_source(study, out, node, rank=rank), together=ways)
    loader = make_loader(ResolvedRun.of(study), source, Recording(len(source.files)))
    samples, right = [], True
    for batch in loader.batches(plan_of(study).reads(rank, 1)):
        for sample, payload in zip(batch.samples, batch.payloads, strict=True):
            samples.append(int(sample))
            right &= bytes(payload) == b"".join(content.payload(study.seed, sample, int(sizes.of_file(0)[sample])))
    tables, _ = loader.finish()
    for way in ways:
        way.leave()
    ops = {kind: totals(tables, "ops", kind) for kind in ("open", "read", "close")}
    return {"samples": samples, "right": right, "ops": ops, "bytes": totals(tables, "nbytes", "read")}


def main(what: str, out: str, *settings: str) -> None:
    world, study = connect(), small_study(*settings)
    rank = world.Get_rank()
    if rank == 0:
        stage(study, out)
        path = tier_files(study, out)[1].path(0)
        if what == "truncated":
            os.truncate(path, os.path.getsize(path) - 1)
        elif what == "gone":
            os.remove(path)
    world.Barrier()
    if what == "read":
        found = world.gather(read(study, out, rank), root=0)
        if rank == 0:
            print(json.dumps(found))
    elif rank == 0:
        MpiCrew(world).call(RunTask(study, choose_loader(study), out, None, "none", None), lambda _: None)
    else:
        serve(world)


main(*sys.argv[1:])
