"""Numbers as people and programs write them: in ASCII digits. `int` also reads those of other scripts. Pure."""

LONGEST = 18  # digits; more fit no key of a row
SENTENCE = "Write numbers with the digits 0 to 9."


def whole(text: str) -> int | None:
    """A key or a count as an address or a hidden field spells it. None: it is none."""
    is_one = 0 < len(text) <= LONGEST and text.isascii() and text.isdigit()
    return int(text) if is_one else None
