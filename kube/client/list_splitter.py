"""A splitter of lists that no parser accepts, by brackets alone: one broken item must not cost the whole list.

Slow, in Python. Only a page with half a surrogate, a number like 01 or arrays a thousand deep gets here.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
OPENING, CLOSING = b"[{", b"]}"
OF_AN_ITEM = 2  # depth of the commas between items: inside the object, inside its array


@dataclass(frozen=True)
class Split:
    items: tuple[bytes, ...]
    rest: bytes  # the list without its items


def split_list(body: bytes) -> Split | None:
    """Splits a list into its items. None: no array `items`, or unbalanced brackets."""
    depth, last, items_start = 0, b"", -1
    cuts: list[int] = []
    for token in TOKEN.finditer(body):
        text = token[0]
        if text in OPENING:
            depth += 1
            if items_start < 0 and text == b"[" and depth == OF_AN_ITEM and last == b'"items"':
                items_start, cuts = token.end(), [token.end()]
        elif text in CLOSING:
            depth -= 1
            if items_start >= 0 and depth == OF_AN_ITEM - 1:
                cuts.append(token.end())
                return Split(_items_between(body, cuts), body[:items_start] + body[token.start() :])
        elif text == b"," and items_start >= 0 and depth == OF_AN_ITEM:
            cuts.append(token.end())
        if depth == 1:
            last = text
    return None


def _items_between(body: bytes, cuts: list[int]) -> tuple[bytes, ...]:
    items = (body[start : end - 1].strip() for start, end in pairwise(cuts))
    return tuple(item for item in items if item)
