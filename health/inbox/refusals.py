"""What findings say no to. `config.errors` turns these into answers."""


class FindingRefusal(Exception):
    """Not now, or not like this. The sentence says what is so instead."""


class BadAct(FindingRefusal):
    """What was written down makes no act on a finding."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.problems = [{"field": field, "sentence": sentence} for field, sentence in problems]
