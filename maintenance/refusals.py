"""The refusals of commands on cases. `config.errors` turns them into HTTP answers."""


class CaseRefused(Exception):
    """The command is refused; the sentence says what is so now, or what to do instead."""


class UnknownRequest(CaseRefused):
    """No repair of a visible case has this request id."""


class BadReceiver(ValueError):
    """Invalid settings of a receiver; `field` names the field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.problems = [{"field": field, "sentence": sentence}]
