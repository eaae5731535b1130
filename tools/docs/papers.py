"""`make papers`: pages and drawings of reproduced studies, from where `tierscope reproduce` wrote them into the documents. Fails where a row that does not
hold says nothing of why."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tierscope.papers.verdict import UNEXPLAINED

ROOT = Path(__file__).resolve().parents[2]
MADE, DOCUMENTS = ROOT / "build" / "papers", ROOT / "docs" / "papers"


def publish(made: Path, documents: Path) -> list[Path]:
    """Drawings of an earlier version give way; what was written."""
    written = []
    for folder in sorted(path for path in made.iterdir() if (path / f"{path.name}.md").is_file()):
        name = folder.name
        for old in (documents / "figures").glob(f"{name}-*.svg"):
            old.unlink()
        for source in (folder / f"{name}.md", *sorted((folder / "figures").glob(f"{name}-*.svg"))):
            target = documents / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            written.append(target)
    return written


def unexplained(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Rows that do not hold and say no more than the conditions that they share with rows that are not failing; (ID, outcome, why) of each."""
    known = [(row_id, outcome == "does not hold", set(why.split("; ")) - {""}) for row_id, outcome, why in rows]
    conditions = {part for _, fails, parts in known if not fails for part in parts}
    return [row_id for row_id, fails, parts in known if fails and (UNEXPLAINED in parts or not parts - conditions)]


def main() -> int:
    for path in publish(MADE, DOCUMENTS):
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    missing = [
        row_id
        for path in sorted(MADE.glob("*/*.json"))
        if path.stem == path.parent.name
        for row_id in unexplained(
            (row["id"], row["outcome"], row["why"]) for row in json.loads(path.read_bytes())["rows"]
        )
    ]
    if missing:
        sys.stderr.write(f"rows that do not hold and give no reason: {', '.join(missing)}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
