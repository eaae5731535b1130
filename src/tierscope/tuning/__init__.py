"""Trying combinations of a study's keys on the real system, and dropping the slow ones early."""
