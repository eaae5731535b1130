"""Our speed beside its bounds, side by side in one run: `make bench`."""
