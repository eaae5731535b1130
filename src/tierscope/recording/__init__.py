"""Recording someone else's command: the recorders, the command itself, and collecting what its processes left."""
