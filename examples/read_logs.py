"""Logs of another profiler: all of one job, and where its files lay."""

import glob

import tierscope as ts

logs = sorted(glob.glob("examples/job-*.pfw"))
result = ts.analyze_logs(logs, tiers={"lfs": "/lfs", "gfs": "/gfs"})
print(result)
