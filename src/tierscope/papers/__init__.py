"""The studies that this project rests on: what they published, row by row, and what Tierscope gets for the same row."""
