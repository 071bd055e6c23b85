"""One API server for each test module, in a thread of its own and empty: what is in it, the tests put there."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from simulator.__main__ import arguments
from simulator.run import Simulation
from tests.patience import PATIENCE_S

WAIT_S = PATIENCE_S


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Simulation]]:
    """Starts simulators that end with the module."""
    running: list[tuple[Simulation, threading.Thread]] = []

    def begin(*words: str) -> Simulation:
        folder = tmp_path_factory.mktemp("simulator")
        started = _begin(folder, *words)
        running.append(started)
        return started[0]

    yield begin
    for simulation, thread in running:
        simulation.stop()
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the simulator did not stop"


@pytest.fixture(scope="module")
def simulation(start: Callable[..., Simulation]) -> Simulation:
    return start()


def _begin(folder: Path, *words: str) -> tuple[Simulation, threading.Thread]:
    options = arguments(["--fleet", "none", "--kubeconfig-out", str(folder / "kubeconfig"), *words])
    made: Future[Simulation] = Future()

    async def run() -> None:
        simulation = Simulation(options)
        serving = asyncio.create_task(simulation.serve())
        await simulation.ready()
        made.set_result(simulation)
        await serving

    def play() -> None:
        try:
            asyncio.run(run())
        except Exception as error:
            if not made.done():
                made.set_exception(error)
            raise

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    return made.result(WAIT_S), thread
