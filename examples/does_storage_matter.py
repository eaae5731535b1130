"""Does storage matter for this network at all? From its layers and the system's peaks; nothing is run."""

import tierscope as ts

for model in ("resnet50", "cosmoflow"):
    found = ts.require(model, system="cori-gpu", batch=8, precision="amp", nodes="1..16")
    print(repr(found), found.scaling(), sep="\n")
