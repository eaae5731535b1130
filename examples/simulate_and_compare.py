"""Simulate a study without any storage, then with twice the metadata servers' rate."""

import sys

import tierscope as ts

out = sys.argv[1] if len(sys.argv) > 1 else "results"
as_it_is = ts.simulate("examples/small.yaml", out=f"{out}/as-it-is", method="bound")
faster = ts.Study.from_yaml("examples/small.yaml", settings={"gfs.metadata_ops": "3000/s"})
then = ts.simulate(faster, out=f"{out}/faster", method="bound")
print(as_it_is.best, then.best, sep="\n")
