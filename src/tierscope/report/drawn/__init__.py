"""What the figures are drawn with, and each of them."""
