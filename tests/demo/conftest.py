from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.demo.terminal import Terminal


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    started: list[Terminal] = []

    def start(*arguments: str, folder: str = "demo") -> Terminal:
        started.append(Terminal(tmp_path / folder, *arguments))
        return started[-1]

    yield start
    for terminal in started:
        terminal.process.kill()
        terminal.process.wait()
