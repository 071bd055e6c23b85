from tests.rollouts.engine.conftest import ground  # noqa: F401 (fixture)
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)
