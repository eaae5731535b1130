"""`make papers-measured`: everything that makes a dated file in validation/measured, for rows of `tierscope reproduce` that need DLIO itself, torch or a real tier."""

import subprocess
import sys

MAKERS = ("validation.measured_similarity", "validation.measured_transfer", "validation.measured_workloads")


def main() -> int:
    """Each in a process of its own; a failure of one does not stop the others."""
    failed = [name for name in MAKERS if subprocess.run([sys.executable, "-m", name], check=False).returncode]
    for name in MAKERS:
        print(f"{name}: {'failed' if name in failed else 'done'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
