"""Fit a system's rates to a result, and keep it for `simulate(…, system=…)`. Takes seconds to minutes."""

import sys

import tierscope as ts

out, path = sys.argv[1:]
system = ts.calibrate(out)
print(system.rates())
system.save(path, force=True)
