"""What holds for every actor."""

from pathlib import Path

import pytest

import maintenance.actors
from maintenance.actors import ACTORS
from maintenance.actors.base import ActorPlace
from maintenance.lifecycle import RepairKind

NO_ACTORS = {"__init__", "base"}


def test_every_file_is_an_actor_in_the_table():
    files = {path.stem for path in Path(maintenance.actors.__file__).parent.glob("*.py")} - NO_ACTORS

    assert {key.replace("-", "_") for key in ACTORS} == files
    assert all(type(actor).__module__ == f"maintenance.actors.{key.replace('-', '_')}" for key, actor in ACTORS.items())


def test_every_repair_can_be_asked_of_a_person_and_no_actor_does_nothing():
    assert ACTORS["person"].kinds == set(RepairKind)
    assert all(actor.kinds and actor.title and actor.waiting.endswith(".") for actor in ACTORS.values())


@pytest.mark.parametrize("key", sorted(set(ACTORS) - {"person"}))
def test_no_other_actor_is_asked_in_a_cluster_that_is_only_observed(key: str):
    assert ACTORS[key].why_not(ActorPlace(is_operated=False, has_receiver=True))
    assert ACTORS["person"].why_not(ActorPlace(is_operated=False, has_receiver=False)) == ""
