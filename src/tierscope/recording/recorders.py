"""What can record a stranger's command (`tierscope trace --with`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tierscope.registry import Entry, Registry

if TYPE_CHECKING:  # a command line is read before anything that starts threads may be imported
    from tierscope.spec.traced import TracedTier
    from tierscope.trace.description import TracedCommand
    from tierscope.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRequest:
    """What is to be recorded of a command."""

    command: tuple[str, ...]
    tiers: "tuple[TracedTier, ...]"
    ops: bool = False
    epochs: str = "marks"
    evict: bool = False  # what it opens on real tiers, through the descriptors that it reads with


class Recorder(Protocol):
    def check(self, program: str, wanted: RecordingRequest) -> list[str]:
        """Before anything is touched: refuse what cannot work (UserError); lines worth saying about the rest."""

    def prepare(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        """Make the folder ready; variables of the environment under which the command records into it."""

    def running(self, folder: str, about: "TracedCommand") -> list[int]:
        """Processes that still record into the folder, as far as this host can tell."""

    def collect(self, folder: str, out: str, about: "TracedCommand") -> "Trace":
        """The trace of all that is in the folder; lists of operations go below `out`. `about` describes the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderEntry(Entry):
    """`profiler`: somebody else's, with logs of its own; it can measure our runs in place of our recorder (`run --profiler`)."""

    profiler: bool = False


BUILTIN = "builtin"
RECORDERS: Registry[type[Recorder], RecorderEntry] = Registry(
    "recorder",
    {
        BUILTIN: RecorderEntry(
            "tierscope.recording.builtin:Builtin", "Tierscope's preloaded library: any program, any tier"
        ),
        "darshan": RecorderEntry(
            "tierscope.recording.darshan:Darshan",
            "the site's Darshan, one log per process",
            "darshan",
            profiler=True,
        ),
        "dftracer": RecorderEntry(
            "tierscope.recording.dftracer:DFTracer", "DFTracer, one line per call", "dftracer", profiler=True
        ),
    },
)
