"""The refusals of commands on cases. `config.errors` turns them into HTTP answers."""


class CaseRefused(Exception):
    """The command is refused; the sentence says what is so now, or what to do instead."""


class UnknownRequest(CaseRefused):
    """No repair of a visible case has this request id."""


class BadSetting(ValueError):
    """An invalid setting; `field` names the field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.problems = [{"field": field, "sentence": sentence}]


class BadReceiver(BadSetting):
    """Invalid settings of a receiver."""


class BadNewNodeGate(BadSetting):
    """Invalid settings of the gate of new nodes."""
