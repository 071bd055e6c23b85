"""Counted nouns: one node, two nodes."""


def count(number: int, noun: str, plural: str = "") -> str:
    """Returns "1 node" or "3 nodes"."""
    return f"{number} {either(number, noun, plural or noun + 's')}"


def every_one_of(number: int, noun: str) -> str:
    """Returns "the one node" or "all 3 nodes"."""
    return either(number, f"the one {noun}", f"all {number} {noun}s")


def either(number: int, singular: str, plural: str) -> str:
    return singular if number == 1 else plural


def are(number: int) -> str:
    return either(number, "is", "are")


def was(number: int) -> str:
    return either(number, "was", "were")


def stay(number: int) -> str:
    return either(number, "stays", "stay")
