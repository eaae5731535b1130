"""What would change: scaled class times, the grid of a goal."""
