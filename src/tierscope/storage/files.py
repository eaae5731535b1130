"""Where on a tier the files of a dataset lie."""

import os
import re
from dataclasses import dataclass

from tierscope.errors import UserError
from tierscope.output.ours import PART, DatasetNames
from tierscope.spec.study import Dataset, Tier
from tierscope.storage.striping import Striping
from tierscope.storage.sums import NAME as SUMS

SIDE = "beside.statistics"  # the small file beside samples
EXTRA_NAMES = (SUMS, SIDE)  # of files in a dataset's folder beside those of samples


def tier_root(tier: Tier, out: str, node: int) -> str:
    """The tier's directory on a node: placeholders and environment variables filled in."""
    expanded = os.path.expanduser(os.path.expandvars(tier.path))
    unset = re.search(r"\$\{?(\w+)", expanded)
    if unset:
        raise UserError(
            f"system.tiers.{tier.name}.path = {tier.path}; ${unset[1]} is not set in the environment: set it or write the path"
        )
    return os.path.abspath(expanded.replace("{node}", str(node)).replace("{out}", out))


def real_root(tier: Tier, out: str, node: int) -> str:
    """The same, wherever links lead."""
    return os.path.realpath(tier_root(tier, out, node))


def dataset_name(dataset: Dataset, seed: int) -> str:
    """Names everything that the files' content and place depend on."""
    name = f"{dataset.format}-{dataset.num_files_train}x{dataset.num_samples_per_file}-{dataset.record_length_bytes}B-seed{seed}"
    if dataset.record_length_bytes_stdev:
        name += f"-stdev{dataset.record_length_bytes_stdev}"
    if dataset.compressibility:
        name += f"-compressible{dataset.compressibility:g}"
    if dataset.format == "hdf5":
        layout = dataset.hdf5
        level = layout.compression_level if layout.compression == "gzip" else ""
        name += f"-chunk{layout.chunk_size or 0}-{layout.compression}{level}"
    if dataset.statistics.file_bytes is not None:
        name += f"-statistics{dataset.statistics.file_bytes}B"
    return f"{name}-in{dataset.num_subfolders_train}" if dataset.num_subfolders_train else name


@dataclass(frozen=True, slots=True)
class DatasetFiles:
    """The paths of a dataset on one tier, as one node sees it. `count`: of its files."""

    tier_root: str
    folder: str
    suffix: str
    subfolders: int
    count: int = 0

    @classmethod
    def of(
        cls, tier: Tier, out: str, node: int, dataset: Dataset, seed: int, suffix: str, copies: bool = False
    ) -> "DatasetFiles":
        """`copies`: those that readers leave there, in a folder of their own beside what was staged."""
        root, name = tier_root(tier, out, node), dataset_name(dataset, seed)
        if (striping := Striping.of(tier)) and not copies:
            name = f"{name}-{striping.name}"
        folder = os.path.join(root, f"{name}-first-touch" if copies else name)
        return cls(root, folder, suffix, dataset.num_subfolders_train, dataset.num_files_train)

    @property
    def names(self) -> DatasetNames:
        """All that are ours in the folder, beside its mark."""
        return DatasetNames(self.suffix, self.count, self.subfolders, EXTRA_NAMES)

    def path(self, file: int) -> str:
        if self.subfolders:
            return f"{self.folder}/{file % self.subfolders:06d}/{file:09d}{self.suffix}"
        return f"{self.folder}/{file:09d}{self.suffix}"

    @property
    def side_path(self) -> str:
        """Of the small file beside the samples; where they are made in memory, it is the only one."""
        return self.path(0) if self.suffix == ".statistics" else f"{self.folder}/{SIDE}"

    def unfinished(self, file: int) -> str:
        """The path of a file while it is written; nobody reads it under this name."""
        return self.path(file) + PART

    def folders(self) -> list[str]:
        """All directories that must exist before files are written."""
        if not self.subfolders:
            return [self.folder]
        return [self.folder, *(f"{self.folder}/{index:06d}" for index in range(self.subfolders))]
