"""Who reads which sample, when, from which tier: pure, seeded, and O(1) in memory."""
