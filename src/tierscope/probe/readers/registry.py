"""The tools whose files are read, in the order in which a text is shown to them."""

from tierscope.probe.readers.elbencho import ELBENCHO
from tierscope.probe.readers.fio import FIO
from tierscope.probe.readers.io500 import IO500
from tierscope.probe.readers.io500_table import IO500_TABLE
from tierscope.probe.readers.ior import IOR
from tierscope.probe.readers.mdtest import MDTEST
from tierscope.probe.readers.phase import BenchmarkReader

READERS: tuple[BenchmarkReader, ...] = (IO500_TABLE, ELBENCHO, FIO, IOR, MDTEST, IO500)
