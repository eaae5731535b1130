"""Measure one block of your own program. Start it with: tierscope trace --tier data=FOLDER -- python examples/traced_block.py FILE"""

import sys

import tierscope as ts

with ts.tracing() as block:
    for _ in range(100):
        with open(sys.argv[1], "rb") as file:
            file.read()
print(block.result)
