"""What this host's storage can do, measured in minutes, as a system that can be simulated."""
