"""Where on Lustre the files of a dataset lie: from one object server on, in a pool, or wherever it puts so many stripes.

That is fixed when the dataset's folder is made, before its first file: files and folders inside take it over. It is verified with
`lfs getstripe`, of the folder each time it is used and of a file when all are written. The layout of what is there is never changed:
another placement is another dataset, in a folder whose name says so.
"""

import re
import subprocess
from dataclasses import dataclass
from typing import Self

from tierscope.errors import UserError
from tierscope.mounts import filesystem_of
from tierscope.spec.emulation import said
from tierscope.spec.lustre_check import placed_by
from tierscope.spec.study import Tier

ANYWHERE = -1  # of lustre_ost, as `lfs` says it
_LFS = "lfs"
_SECONDS = 60
_FIELD = re.compile(r"\b(?:lmm_)?(stripe_count|stripe_size|stripe_offset|pool):\s*(\S+)")


@dataclass(frozen=True, slots=True)
class StripeLayout:
    """What `lfs getstripe` says of a folder or a file."""

    count: int
    size: int
    ost: int
    pool: str | None

    def __str__(self) -> str:
        place = (
            f"in pool {self.pool}" if self.pool else "anywhere" if self.ost == ANYWHERE else f"from OST {self.ost} on"
        )
        return f"{self.count} stripe{'s' if self.count != 1 else ''} of {self.size} bytes {place}"


@dataclass(frozen=True, slots=True)
class Striping:
    """How a tier's files shall lie; `key`: the user's words for it."""

    count: int
    size: int
    ost: int | None
    pool: str | None
    key: str

    @classmethod
    def of(cls, tier: Tier) -> Self | None:
        """None: wherever the file system puts them."""
        name = placed_by(tier)
        if name is None:
            return None
        key = f"system.tiers.{tier.name}.{said(tier, name)}"
        return cls(tier.stripe_count, tier.stripe_size, tier.lustre_ost, tier.lustre_pool, key)

    @property
    def name(self) -> str:
        """For the folder of a dataset."""
        place = f"pool-{self.pool}" if self.pool else "ost-any" if self.ost == ANYWHERE else f"ost{self.ost}"
        return f"{place}-{self.count}x{self.size}B"

    def wanted(self) -> StripeLayout:
        return StripeLayout(self.count, self.size, ANYWHERE if self.ost is None else self.ost, self.pool)

    def fits(self, layout: StripeLayout) -> bool:
        wanted = self.wanted()
        placed = wanted.pool == layout.pool and wanted.ost in (ANYWHERE, layout.ost)
        return placed and (wanted.count, wanted.size) == (layout.count, layout.size)


def set_tokens(striping: Striping, folder: str) -> list[str]:
    place = ["-p", striping.pool] if striping.pool else ["-i", str(striping.ost)]
    return [_LFS, "setstripe", "-c", str(striping.count), "-S", str(striping.size), *place, folder]


def get_tokens(path: str) -> list[str]:
    """Of a folder itself, not of what is in it."""
    return [_LFS, "getstripe", "-d", path]


def parse(text: str) -> StripeLayout | None:
    """Of a folder (`stripe_count: 1 stripe_size: …` in one line) or of a file (`lmm_stripe_count: 1`, a line each); None: nothing of the kind, or of several parts of a file (`lcm_…`), each with its own."""
    if "lcm_" in text:
        return None
    fields = dict(reversed([(match[1], match[2]) for match in _FIELD.finditer(text)]))  # the first of each
    try:
        return StripeLayout(
            int(fields["stripe_count"]),
            int(fields["stripe_size"]),
            int(fields["stripe_offset"]),
            fields.get("pool"),
        )
    except (KeyError, ValueError):
        return None


def fix(striping: Striping, folder: str) -> None:
    """For a folder that is new: what will be in it lies there."""
    _refuse_others(striping, folder)
    _run(striping, set_tokens(striping, folder))
    verify(striping, folder)


def verify(striping: Striping, path: str) -> None:
    """Refuse a folder or a file that does not lie as it shall."""
    _refuse_others(striping, path)
    said = _run(striping, get_tokens(path))
    layout = parse(said)
    if layout is None:
        first = said.strip().partition("\n")[0]
        raise UserError(f"{path}: lfs getstripe reports no plain layout ({first or 'no output'}); is it on Lustre?")
    if not striping.fits(layout):
        raise UserError(
            f"{path}: has {layout}, but {striping.key} means {striping.wanted()}; remove the dataset, or change the key"
        )


def _refuse_others(striping: Striping, path: str) -> None:
    kind = filesystem_of(path)
    if kind != "lustre":
        raise UserError(
            f"{striping.key}, but {path} is on {kind}, not on Lustre; remove the key, or use a path on Lustre"
        )


def _run(striping: Striping, tokens: list[str]) -> str:
    """What the program wrote. It is started without copying this process, as ranks of MPI must not be."""
    try:
        done = subprocess.run(tokens, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise UserError(
            f"{striping.key} needs the program lfs, which is not in PATH; load Lustre's tools, or remove the key"
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = error.strerror if isinstance(error, OSError) else f"no answer within {_SECONDS} s"
        raise UserError(f"{striping.key}: {' '.join(tokens[:2])} failed: {reason}") from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        reason = words[-1] if words else f"exit code {done.returncode}"
        raise UserError(f"{striping.key}: {' '.join(tokens[:2])} failed: {reason}")
    return done.stdout
