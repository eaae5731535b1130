"""Damaged input of every kind for every command: none ends in a traceback, hangs, eats memory, or touches what is not ours.

    python -m tools.fuzz --cases 10000 --seed 1
    python -m tools.fuzz --case 1234          one case again; its folder is kept, and all that it said is shown

Some healthy files are made by running the program, and differ a little every time: --case takes those of the last full run.
Mistakes are grouped: tracebacks by their last frame of ours, each with the number of its first case.
"""

import argparse
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.fuzz.children import Outcome, run_cases, warm_up
from tools.fuzz.seeds import make_seeds


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--case", type=int, help="only this one, by its number")
    parser.add_argument("--minutes", type=float, default=20, help="no case starts later (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time (%(default)s)")
    parser.add_argument(
        "--seeds", type=Path, default=Path("build/fuzz"), help="healthy files: made anew, but for --case"
    )
    options = parser.parse_args()
    start = time.monotonic()
    if options.case is None or not options.seeds.is_dir():
        shutil.rmtree(options.seeds, ignore_errors=True)
        options.seeds.mkdir(parents=True)
        make_seeds(options.seeds)
    seeds = options.seeds.resolve()
    warm_up()
    if options.case is not None:
        work = Path(tempfile.mkdtemp(prefix=f"tierscope-case-{options.case}-"))
        (outcome,) = run_cases([options.case], options.seed, seeds, work, 1, keep=True)
        _report_case(outcome, work)
        return 1 if outcome.mistake else 0
    with tempfile.TemporaryDirectory(prefix="tierscope-fuzz-", ignore_cleanup_errors=True) as name:
        numbers = _until(range(options.cases), start + 60 * options.minutes)
        outcomes = list(_told(run_cases(numbers, options.seed, seeds, Path(name), options.jobs), start))
    return _sum_up(outcomes, options.cases, options.seed, time.monotonic() - start)


def _until(numbers: Iterable[int], deadline: float) -> Iterator[int]:
    for number in numbers:
        if time.monotonic() > deadline:
            return
        yield number


def _told(outcomes: Iterator[Outcome], start: float) -> Iterator[Outcome]:
    for done, outcome in enumerate(outcomes, 1):
        if done % 500 == 0:
            sys.stderr.write(f"{done} cases, {time.monotonic() - start:.0f} s\n")
        yield outcome


def _sum_up(outcomes: list[Outcome], wanted: int, seed: int, seconds: float) -> int:
    wrong = sorted((outcome for outcome in outcomes if outcome.mistake), key=lambda outcome: outcome.case.number)
    _table("kind of input", Counter((outcome.case.kind, _end(outcome)) for outcome in outcomes))
    _table("command", Counter((outcome.case.command, _end(outcome)) for outcome in outcomes))
    firsts: dict[str, Outcome] = {}
    for outcome in wrong:
        firsts.setdefault(outcome.mistake, outcome)
    counts = Counter(outcome.mistake for outcome in wrong)
    for mistake, count in counts.most_common():
        first = firsts[mistake]
        _say(
            f"{count:5} × {mistake}\n        make fuzz CASE={first.case.number} SEED={seed}: {_line(first)} ({first.case.how})"
        )
    kinds = {"traceback": "tracebacks", "hangs": "hangs", "more than 1 GiB": "beyond 1 GiB"}
    told = (f"{sum(outcome.mistake.startswith(kind) for outcome in wrong)} {name}" for kind, name in kinds.items())
    _say(
        f"{len(outcomes)} of {wanted} cases, {len(wrong)} mistakes of {len(counts)} kinds: {', '.join(told)}; "
        f"seed {seed}, {seconds:.0f} s, {sum(outcome.ended.cpu_seconds for outcome in outcomes):.0f} s of CPU"
    )
    return 1 if wrong or len(outcomes) < wanted else 0


def _end(outcome: Outcome) -> str:
    if outcome.mistake:
        return "mistake"
    return {0: "done", 2: "refused", 3: "stopped"}.get(outcome.ended.code, "other")


def _table(title: str, counts: Counter[tuple[str, str]]) -> None:
    ends = ("done", "refused", "stopped", "other", "mistake")
    _say(f"{title:24}" + "".join(f"{end:>9}" for end in ends))
    for row in sorted({name for name, _ in counts}):
        _say(f"{row:24}" + "".join(f"{counts[row, end]:9}" for end in ends))
    _say("")


def _line(outcome: Outcome) -> str:
    given = [f"{name}={shlex.quote(value)}" for name, value in outcome.case.environment.items()]
    return ascii(" ".join([*given, "tierscope", *(shlex.quote(word) for word in outcome.case.arguments)]))[1:-1][:200]


def _report_case(outcome: Outcome, work: Path) -> None:
    _say(f"in {work}/{outcome.case.number}/here: {_line(outcome)}\n{outcome.case.kind}: {outcome.case.how!a}")
    for name, content in (("stdout", outcome.ended.out), ("stderr", outcome.ended.err)):
        _say(f"--- {name}\n{ascii(content.decode('utf-8', 'backslashreplace'))[1:-1]}".replace("\\n", "\n"))
    _say(f"--- exit code {outcome.ended.code}, {outcome.ended.seconds:.1f} s: {outcome.mistake or 'all is well'}")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
