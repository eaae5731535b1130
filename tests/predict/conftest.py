"""Simulated times of these tests have intervals of few draws, but for those that ask how wide they are."""

from tests.few_draws import few_draws

__all__ = ["few_draws"]
