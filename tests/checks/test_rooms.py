"""Who cannot read `.importlinter` names the rooms by hand."""

from demo.reloading import WATCHED
from tests.rooms import OURS, PRODUCT, ROOT


def test_every_package_is_a_room():
    there = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    assert set(OURS) == there - {"tests", "benchmarks"}


def test_the_demo_starts_anew_whichever_room_changes():
    assert set(WATCHED) == set(PRODUCT)


def test_the_image_has_every_room():
    written = (ROOT / "deploy" / "Dockerfile").read_text()

    assert [room for room in PRODUCT if f"COPY {room} {room}\n" not in written] == []
