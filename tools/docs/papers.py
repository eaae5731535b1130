"""`make papers`: pages and drawings of reproduced studies, from where `tierscope reproduce` wrote them into the documents."""

import sys
from pathlib import Path

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


def main() -> int:
    for path in publish(MADE, DOCUMENTS):
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
