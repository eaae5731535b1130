"""What lies on the tiers: generating it, whether it fits, and removing it again."""
