"""One small C library: the recorder and the emulated tiers as a preload shim, and a read engine without the GIL."""
