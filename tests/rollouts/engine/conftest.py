from collections.abc import Callable, Iterator

import pytest

from simulator.run import Simulation
from tests.rollouts.engine.ground import Ground, a_ground
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)


@pytest.fixture
def ground(db: None, start: Callable[..., Simulation]) -> Iterator[Ground]:  # noqa: F811
    """A cluster of its own for each test; its server ends with the module."""
    simulation = start()
    made = a_ground(simulation)
    yield made
    made.connection.close()
    simulation.stop()
