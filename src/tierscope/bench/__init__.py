"""Doing a plan for real: ranks, their loop, and the emulated compute between reads."""
