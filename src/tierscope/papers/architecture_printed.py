"""What the Architecture study prints in its tables, with the digits that it prints, and arithmetic that knows how far printed numbers are rounded."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

GIB, MIB, TIB = 2**30, 2**20, 2**40
NAMES = ("cosmoflow", "deepcam", "resnet50")
TITLES = {"cosmoflow": "CosmoFlow", "deepcam": "DeepCAM", "resnet50": "ResNet-50"}


@dataclass(frozen=True, slots=True)
class Rounded:
    """A printed number: anything between `low` and `high` would have been printed like it."""

    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> "Rounded":
        """`1.44` is 1.435 to 1.445; `15.4e3` has three digits."""
        number = Decimal(text)
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        half = Decimal(5).scaleb(exponent - 1)
        return cls(float(number - half), float(number + half))

    def __mul__(self, other: "Rounded | float") -> "Rounded":
        by = _exact(other)
        return Rounded(self.low * by.low, self.high * by.high)

    def __truediv__(self, other: "Rounded | float") -> "Rounded":
        by = _exact(other)
        return Rounded(self.low / by.high, self.high / by.low)

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def meets(self, printed: str) -> bool:
        """Whether some of these values would have been printed so."""
        other = Rounded.of(printed)
        return self.low <= other.high and other.low <= self.high


def _exact(value: "Rounded | float") -> Rounded:
    return value if isinstance(value, Rounded) else Rounded(value, value)


@dataclass(frozen=True, slots=True)
class PrintedNetwork:
    """Of a sample on one V100 (Table II). Operations in 2^30, bytes of HBM in GiB, of a sample in MiB, bandwidth in GB/s."""

    operations: str
    kept: str
    limit: str
    moved: str
    sustained: str
    sample: str
    per_sample_byte: str
    per_limit_byte: str
    per_moved_byte: str

    def rounded(self, name: str) -> Rounded:
        text: str = getattr(self, name)
        return Rounded.of(text)

    @property
    def step_seconds(self) -> float:
        """Of one sample on a GPU, as its bytes and its bandwidth imply (A-X-3)."""
        return float(self.moved) * GIB / (float(self.sustained) * 1e9)


# ResNet-50 moves 0.56 GiB by the text and by the ratio in its own table, which prints 0.68 (A-C-1).
PRINTED: Mapping[str, PrintedNetwork] = {
    "cosmoflow": PrintedNetwork("247", "0.72", "1.44", "6.4", "127", "16", "15.4e3", "171", "38.6"),
    "deepcam": PrintedNetwork("2887", "2.9", "5.8", "52", "270", "27", "107e3", "498", "55.5"),
    "resnet50": PrintedNetwork("31", "0.042", "0.084", "0.56", "145", "0.14", "221e3", "369", "55.35"),
}


def by_network(texts: Mapping[str, str]) -> str:
    """`CosmoFlow 1; DeepCAM 2`"""
    return "; ".join(f"{TITLES[name]} {text}" for name, text in texts.items())
