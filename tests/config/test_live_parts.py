"""What a part of a page may hold, which is fetched anew while somebody looks at it."""

import re
from collections.abc import Iterator
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
INCLUDED = re.compile(r'{% include "([^"]+)"')
WRITTEN_INTO = re.compile(r'<(?:textarea|select|input(?! type="hidden"))[^>]*>')


def included(name: str) -> Iterator[str]:
    text = (TEMPLATES / name).read_text()
    yield name
    for inner in INCLUDED.findall(text):
        yield from included(inner)


def test_no_part_has_a_field_that_somebody_writes_into():
    """With the next message it would be as the server sent it. A dialog beside the part keeps what is in it."""
    parts = [path for path in TEMPLATES.rglob("_*.html") if "data-part=" in path.read_text()]
    names = {name for path in parts for name in included(str(path.relative_to(TEMPLATES)))}

    assert len(parts) > 20
    assert [name for name in sorted(names) if WRITTEN_INTO.search((TEMPLATES / name).read_text())] == []
