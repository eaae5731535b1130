"""Batches on their way to an accelerator, without one: what waits for what, on streams that only write it down; and that inputs are those of a host."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tierscope.loaders import Batch

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

LARGE = (1, 256, 257)  # more than is gathered first


class Streams:
    """Of a device: what was told to them, in order. Events have numbers: two for each room, the first of its copies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[tuple[str, str, int]] = []
        streams = self
        events: list[object] = []

        class Event:
            def __init__(self) -> None:
                self.number = len(events)
                events.append(self)

            def record(self, stream: Any = None) -> None:
                streams.log.append(((stream or computing).name, "records", self.number))

            def synchronize(self) -> None:
                streams.log.append(("host", "waits", self.number))

        class Stream:
            def __init__(self, _device: Any, name: str = "copying") -> None:
                self.name = name

            def wait_event(self, event: Event) -> None:
                streams.log.append((self.name, "waits", event.number))

        computing, empty = Stream(None, "computing"), torch.empty

        def unpinned(*shape: Any, pin_memory: bool = False, **more: Any) -> Any:
            del pin_memory
            return empty(*shape, **more)

        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _: computing)
        monkeypatch.setattr(torch, "empty", unpinned)


def batch_of(shape: tuple[int, ...], count: int, seed: int, nbytes: int | None = None) -> Batch:
    random = np.random.default_rng(seed)
    payloads = [memoryview(bytearray(random.bytes(nbytes or int(np.prod(shape))))) for _ in range(count)]
    return Batch(0, np.arange(count), payloads, 0, 0)


@pytest.mark.parametrize(("shape", "nbytes"), [(LARGE, None), ((1, 8, 8), None), (LARGE, 1000), (LARGE, 100_000)])
def test_inputs_are_those_of_a_host(
    shape: tuple[int, ...], nbytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierscope.train.pinned import PinnedCopies  # noqa: PLC0415
    from tierscope.train.samples import HostSamples, StoredSamples  # noqa: PLC0415

    stored = StoredSamples(shape, 1)
    host = HostSamples(stored, 3)
    Streams(monkeypatch)
    copies = PinnedCopies(stored, 3, torch.device("cpu"))
    for seed, count in enumerate((3, 3, 3, 3, 2)):  # more than the device has memory for, and a short last one
        batch = batch_of(shape, count, seed, nbytes)
        inputs = copies(batch)
        assert torch.equal(inputs, host(batch))
        copies.release()


def test_memory_is_used_again_when_it_was_copied_and_cast(monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.train.pinned import AHEAD, PinnedCopies  # noqa: PLC0415
    from tierscope.train.samples import StoredSamples  # noqa: PLC0415

    streams = Streams(monkeypatch)
    copies = PinnedCopies(StoredSamples(LARGE, 1), 2, torch.device("cpu"))
    copies.release()  # of nothing
    for _ in range(2 * AHEAD):
        copies(batch_of(LARGE, 2, 0))
        copies.release()
    told = [streams.log[start : start + 5] for start in range(0, len(streams.log), 5)]
    rooms = [steps[0][2] // 2 for steps in told]
    assert rooms == [*rooms[:AHEAD]] * 2
    assert sorted(rooms[:AHEAD]) == list(range(AHEAD))
    for room, steps in zip(rooms, told, strict=True):
        copied, used = 2 * room, 2 * room + 1
        assert steps == [
            ("copying", "waits", used),  # until what was in it is cast
            ("copying", "records", copied),
            ("computing", "waits", copied),
            ("computing", "records", used),
            ("host", "waits", copied),  # before the loader reads into the batch's memory again
        ]
