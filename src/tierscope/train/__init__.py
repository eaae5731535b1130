"""Real training on torch, of the networks of `arch`, with data from our tiers. Imports torch; nothing of the core imports this room at load time."""
