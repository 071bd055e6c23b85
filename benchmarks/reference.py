"""How fast this machine is just now: a fixed piece of plain Python, so that figures of two machines can be compared.

`reference_ms` is the best of five. Change neither the document nor the number: every figure in docs/figures.md that
stands beside one would lose its meaning.
"""

import json
import time
from pathlib import Path

DOCUMENT = Path(__file__).with_name("reference.json")  # a node of the large fleet
TIMES = 200


def reference_ms() -> float:
    text = DOCUMENT.read_text(encoding="utf-8")
    return min(_once_ms(text) for _ in range(5))


def _once_ms(text: str) -> float:
    began = time.perf_counter()
    for _ in range(TIMES):
        json.dumps(json.loads(text))
    return (time.perf_counter() - began) * 1000
