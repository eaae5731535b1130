"""Where does the time go? Read a result (here: a CSV of times) and look at its points."""

import sys

import tierscope as ts

result = ts.load(sys.argv[1] if len(sys.argv) > 1 else "examples/times.csv")
print(result)
for point in result.points:
    print(point.values, f"{point.io_seconds:.2f} s of I/O, bottleneck {point.bottleneck}")
