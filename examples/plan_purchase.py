"""What to buy: simulate systems that nobody built, and list the cheapest that meet a goal."""

import tierscope as ts

study = ts.Study.from_yaml("examples/small.yaml")
found = study.explore(
    "io=30ms",
    vary={"gfs.metadata_ops": [750, 1500, 3000, 6000]},
    cost={"gfs.metadata_ops": "800/kop/s"},
    method="bound",
)
print(found)
