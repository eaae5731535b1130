"""Traces seen as the method sees them: class times per process, the slowest process, the bottleneck."""
