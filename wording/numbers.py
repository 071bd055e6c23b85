"""One node, two nodes."""


def count(number: int, noun: str, plural: str = "") -> str:
    """ "1 node", "3 nodes"."""
    return f"{number} {either(number, noun, plural or noun + 's')}"


def every(number: int, noun: str) -> str:
    """ "the one node", "all 3 nodes"."""
    return either(number, f"the one {noun}", f"all {number} {noun}s")


def either(number: int, one: str, many: str) -> str:
    """The word for one of it, or for another number."""
    return one if number == 1 else many


def are(number: int) -> str:
    return either(number, "is", "are")


def was(number: int) -> str:
    return either(number, "was", "were")


def stay(number: int) -> str:
    return either(number, "stays", "stay")
