"""Limits of what a run may hold, as types: shared by the description and the check of the table."""

from typing import Annotated

from msgspec import Meta

MOST_SECONDS = 1e12  # sums of them stay numbers
MOST_COUNTED = 2**62
LARGEST = 2**31 - 1  # of 32 bits
MOST_TIERS = 256
TIER_PATTERN = r"^[a-z][a-z0-9_]{0,15}\Z"

Seconds = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]
Count = Annotated[int, Meta(ge=0, le=MOST_COUNTED)]
Number = Annotated[float, Meta(ge=-(2.0**64), le=2.0**64)]  # finite
Share = Annotated[float, Meta(ge=0, le=1)]
Size = Annotated[int, Meta(ge=1, le=LARGEST)]
TierName = Annotated[str, Meta(pattern=TIER_PATTERN)]
EpochNumber = Annotated[int, Meta(ge=0, lt=10**10)]
