class BadInput(ValueError):
    """Invalid input; `field` names the field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field

    @property
    def problems(self) -> list[dict[str, str]]:
        return [{"field": self.field, "sentence": str(self)}]


class BadChannel(BadInput):
    """A channel cannot be so."""


class BadRoute(BadInput):
    """A route cannot be so."""


class BadPreference(BadInput):
    """A person's preferences cannot be so."""


class NotificationRefusal(Exception):
    """The request makes no sense in the current state."""
