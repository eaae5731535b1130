"""What lies on the tiers: generating it, marking it as ours, whether it fits, and whether it is cold."""
