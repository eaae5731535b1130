"""What would faster metadata change, and which improvements meet a goal? Estimated, not measured: read the warnings."""

import tierscope as ts

result = ts.load("examples/times.csv")
estimate = result.estimate(GFS_META=50)
print(estimate, *[warning.text for warning in estimate.warnings], sep="\n")
found = result.explore("io=600ms", vary={"GFS-META": range(0, 201, 50), "LFS-READ": range(0, 201, 50)})
print(found.table())
