"""Whole numbers in ASCII digits; `int` also reads the digits of other scripts. Pure."""

LONGEST = 18  # digits; a longer number fits no key of a row
SENTENCE = "Write numbers with the digits 0 to 9."


def whole_number(text: str) -> int | None:
    """Returns a key or count from an address or a hidden field. None: the text is no such number."""
    is_number = 0 < len(text) <= LONGEST and text.isascii() and text.isdigit()
    return int(text) if is_number else None
