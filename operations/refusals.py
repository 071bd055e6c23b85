"""The refusals of commands on operations. `config.errors` turns them into HTTP answers."""


class OperationRefused(Exception):
    """The command is refused; the sentence says what to do instead."""


class BadOperation(OperationRefused):
    """The input is no valid operation."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.problems = [{"field": field, "sentence": sentence} for field, sentence in problems]
