"""Logs that other profilers wrote: read as what they are, then turned into a trace."""
