"""Tierscope: where training's I/O time goes across storage tiers, and what to do about it."""

__version__ = "0.1.0"
