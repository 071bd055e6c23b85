"""A ground that was planted before is as the first one was; one on which a plan was armed, as the walk leaves it."""

from collections.abc import Callable

import pytest

from simulator.fleets.plan import Mode
from simulator.kinds import NODE
from simulator.run import Simulation
from tests.make import a_cluster
from tests.rollouts.engine import ground as grounds
from tests.rollouts.engine.ground import CANARY, NODES, Ground, a_ground
from tests.rollouts.engine.kept import objects
from tests.saved_rows import put_rows, rows
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)


@pytest.fixture
def walked(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The first of a process."""
    monkeypatch.setattr(grounds, "ARMED", {})
    ground.armed()
    assert patches(ground)
    return ground


@pytest.fixture
def later(walked: Ground, start: Callable[..., Simulation]) -> Ground:  # noqa: F811
    """Another test's, after the first one's rows are rolled back."""
    roll_back()
    return a_ground(start())


def roll_back() -> None:
    """Leaves the rows that a migration wrote, as the end of a test does."""
    planted = grounds.PLANTED[Mode.NVIDIA_DRIVER]
    put_rows(planted.on[0], instead_of=rows())


def patches(ground: Ground) -> list[dict]:
    return [one for one in ground.simulation.log.since(0) if one["method"] == "PATCH"]


@pytest.mark.nightly
def test_it_has_the_rows_and_the_cluster_that_the_walk_led_to(walked: Ground, request: pytest.FixtureRequest):
    its_rows, at = rows(), walked.clock()
    its_nodes = [walked.node(name) for name in NODES]
    later: Ground = request.getfixturevalue("later")

    later.armed()

    assert patches(later) == []
    assert [later.store.get(NODE, name) for name in NODES] == its_nodes
    assert later.clock() == at
    assert later.cluster.kubeconfig == str(later.simulation.kubeconfig) != walked.cluster.kubeconfig
    type(later.cluster).objects.update(kubeconfig=walked.cluster.kubeconfig)
    assert rows() == its_rows
    later.connection.close()


def test_its_next_round_is_the_one_that_lets_the_canary_go(later: Ground):
    later.armed()

    later.round()

    assert later.releases() == [CANARY]
    later.connection.close()


def test_a_ground_that_was_planted_before_is_the_same_but_for_its_address(
    ground: Ground,
    start: Callable[..., Simulation],  # noqa: F811
):
    its_rows, its_objects, version = rows(), objects(ground.store), ground.store.version
    roll_back()

    later = a_ground(start())

    assert later.simulation.log.since(0) == []
    assert later.cluster.kubeconfig == str(later.simulation.kubeconfig) != ground.cluster.kubeconfig
    assert (objects(later.store), later.store.version) == (its_objects, version)
    later.look()  # reads them, and finds nothing that its rows do not say
    type(later.cluster).objects.update(kubeconfig=ground.cluster.kubeconfig)
    assert rows() == its_rows
    later.connection.close()


def test_on_what_was_not_there_it_is_planted_anew(ground: Ground, start: Callable[..., Simulation]):  # noqa: F811
    roll_back()
    a_cluster("another")
    later = a_ground(start())

    assert later.simulation.log.since(0)
    assert later.cluster.name == "north"
    assert type(later.cluster).objects.count() == 2
    later.connection.close()


@pytest.mark.nightly
def test_who_touched_the_cluster_or_a_row_before_walks(later: Ground):
    later.label(CANARY, **{"example.com/touched": "true"})
    later.look()
    later.armed()

    assert patches(later)
    assert later.labels(CANARY)["example.com/touched"] == "true"
    later.connection.close()


@pytest.mark.nightly
def test_labels_that_nodes_have_before_are_part_of_the_way(
    later: Ground,
    start: Callable[..., Simulation],  # noqa: F811
):
    labels = {"example.com/labelled": "true"}
    later.armed(labels=labels, labelled=[CANARY])
    assert patches(later)
    its_nodes = [later.node(name) for name in NODES]
    later.connection.close()
    put_rows({}, instead_of=rows())

    third = a_ground(start())
    third.armed(labels=labels, labelled=[CANARY])

    assert patches(third) == []
    assert [third.node(name) for name in NODES] == its_nodes
    assert [name for name in NODES if labels.items() <= third.labels(name).items()] == [CANARY]
    third.connection.close()


@pytest.mark.nightly
def test_a_plan_that_is_given_something_else_is_another_way(later: Ground):
    later.armed(canaries=2)

    assert patches(later)
    assert later.stage().targets.count() == 2
    later.connection.close()
