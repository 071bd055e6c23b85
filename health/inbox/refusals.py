"""Refusals of acts on findings. `config.errors` turns them into answers."""


class FindingRefusal(Exception):
    """The act is not possible now. The sentence states the current state."""


class BadAct(FindingRefusal):
    """The input makes no valid act on a finding."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.problems = [{"field": field, "sentence": sentence} for field, sentence in problems]
