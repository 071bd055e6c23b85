"""Sentences made of texts of people and of clusters."""


def capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def with_period(text: str) -> str:
    """Returns the text with a full stop, if it does not end a sentence already."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
