"""Logs of other profilers: read as what they are, then made a trace."""
