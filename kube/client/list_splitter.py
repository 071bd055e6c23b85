"""A list cut into its items by brackets alone, for one that no parser takes: a single rotten item must not cost it.

Slow, in Python; only a page with half a surrogate, a number like 01 or arrays a thousand deep ever comes here.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
OPENING, CLOSING = b"[{", b"]}"
OF_AN_ITEM = 2  # how deep the commas between items are: inside the object, inside its array


@dataclass(frozen=True)
class Split:
    items: tuple[bytes, ...]
    rest: bytes  # the list, with none


def split_list(body: bytes) -> Split | None:
    """None: it has no array `items`, or its brackets do not match."""
    depth, last, begun = 0, b"", -1
    cuts: list[int] = []
    for token in TOKEN.finditer(body):
        found = token[0]
        if found in OPENING:
            depth += 1
            if begun < 0 and found == b"[" and depth == OF_AN_ITEM and last == b'"items"':
                begun, cuts = token.end(), [token.end()]
        elif found in CLOSING:
            depth -= 1
            if begun >= 0 and depth == OF_AN_ITEM - 1:
                cuts.append(token.end())
                return Split(_between(body, cuts), body[:begun] + body[token.start() :])
        elif found == b"," and begun >= 0 and depth == OF_AN_ITEM:
            cuts.append(token.end())
        if depth == 1:
            last = found
    return None


def _between(body: bytes, cuts: list[int]) -> tuple[bytes, ...]:
    pieces = (body[start : end - 1].strip() for start, end in pairwise(cuts))
    return tuple(piece for piece in pieces if piece)
