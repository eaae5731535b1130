"""Processor sharing: who is over when, and that no work is lost or made."""

from hypothesis import given
from hypothesis import strategies as st

from tierscope.storage import sharing
from tierscope.storage.sharing import Present

MS = 1_000_000
ARRIVALS = st.lists(st.tuples(st.integers(0, 20 * MS), st.integers(0, 10 * MS)), min_size=1, max_size=40)


def test_two_of_the_same_size_end_together() -> None:
    present = Present(0, 100, [])
    first, second = present.join(10 * MS), present.join(10 * MS)
    assert present.over_at(first) == present.over_at(second) == 100 + 20 * MS
    present.advance(100 + 20 * MS - 1)
    assert present.over_at(first) == 100 + 20 * MS
    present.advance(100 + 20 * MS)
    assert present.over_at(first) is None
    assert present.targets == []


def test_a_latecomer_gets_its_half_from_then_on() -> None:
    present = Present(0, 0, [])
    first = present.join(10 * MS)
    present.advance(5 * MS)
    second = present.join(10 * MS)
    assert present.over_at(first) == 15 * MS  # 5 ms alone, 10 ms at half speed
    assert present.over_at(second) == 20 * MS  # 10 ms at half speed, 5 ms alone


def test_a_short_one_overtakes_a_long_one() -> None:
    present = Present(0, 0, [])
    long = present.join(100 * MS)
    short = present.join(1 * MS)
    assert present.over_at(short) == 2 * MS
    assert present.over_at(long) == 101 * MS


def test_whoever_looks_late_sees_every_end_at_its_time() -> None:
    """Nobody has to leave: a client that is gone holds up nobody."""
    present = Present(0, 0, [])
    for service in (1, 2, 3):
        present.join(service * MS)
    present.advance(1000 * MS)
    assert (present.targets, present.updated) == ([], 1000 * MS)
    again = present.join(5 * MS)
    assert present.over_at(again) == 1005 * MS  # alone, and idle time was lost, not saved up


def test_a_service_of_nothing_is_over_at_once() -> None:
    present = Present(7, 0, [])
    assert present.over_at(present.join(0)) is None
    present.join(5)
    present.advance(1)
    assert present.over_at(present.join(0)) is None


@given(ARRIVALS)
def test_work_is_conserved_for_any_arrivals(arrivals: list[tuple[int, int]]) -> None:
    """The station is done with all at the very nanosecond at which a FIFO queue would be, and everybody was promised no later end before."""
    present, now, fifo = Present(0, 0, []), 0, 0
    promised: dict[int, int] = {}
    for pause, service in arrivals:
        now += pause
        present.advance(now)
        fifo = max(now, fifo) + service
        present.join(service)
        for target in present.targets:
            if (over := present.over_at(target)) is not None:
                assert over >= promised.get(target, 0)  # what comes makes it later, never sooner
                promised[target] = over
    last = max((present.over_at(target) or now for target in present.targets), default=now)
    assert max(last, now) == max(fifo, now)
    present.advance(last)
    assert present.targets == [] or last == now
    present.advance(last + 1)
    assert present.targets == []


@given(ARRIVALS, st.lists(st.integers(0, 5 * MS), max_size=20))
def test_looking_changes_nothing(arrivals: list[tuple[int, int]], looks: list[int]) -> None:
    def ends(times_of_looks: list[int]) -> list[int | None]:
        present, now, found = Present(0, 0, []), 0, []
        waiting = list(times_of_looks)
        for pause, service in arrivals:
            for look in waiting:
                if look < pause:
                    present.advance(now + look)
            now += pause
            present.advance(now)
            found.append(present.over_at(present.join(service)))
        return found

    exact, looked = ends([]), ends(sorted(looks))
    for one, other in zip(exact, looked, strict=True):
        assert (one is None) == (other is None)
        assert one is None or other is None or abs(one - other) <= len(arrivals) ** 2  # ns: whole steps of the clock


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.lists(st.integers(0, 2**62), max_size=10), st.integers(0, 5))
def test_it_is_kept_on_the_board(clock: int, updated: int, targets: list[int], first: int) -> None:
    room = 10
    words = memoryview(bytearray(8 * (first + sharing.slots(room)))).cast("q")
    present = Present(clock, updated, sorted(targets))
    present.write(words, first)
    assert Present.read(words, first) == present
    Present(1, 2, []).write(words, first)
    assert Present.read(words, first) == Present(1, 2, [])
