"""Plans with very many nodes: their number and rough duration, stated before the start. Pure."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.commands.duration import Duration
from wording.numbers import count

MANY = 1_000  # nodes
FIX = "Every node is held before the first one changes, which alone takes minutes. Larger waves take fewer of them."


def is_large(nodes: int, duration: Duration) -> Iterator[Check]:
    if nodes >= MANY:
        yield Check("large", f"It changes {count(nodes, 'node')}. {duration.sentence}", FIX, field="stages")
