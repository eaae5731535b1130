"""Time limits as schedulers write them."""


def hours(seconds: int) -> str:
    """`1:05:00`."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
