"""Run a study on this machine. Interrupt it when you like: the same command continues."""

import sys

import tierscope as ts

result = ts.run("examples/small.yaml", out=sys.argv[1] if len(sys.argv) > 1 else "results/small")
print(result.breakdown())
print(*[finding.text for finding in result.findings], sep="\n")
