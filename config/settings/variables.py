"""A reader of the environment that records the variables read."""

from typing import Any

import environ


class Variables(environ.Env):
    """Records every variable that a setting reads. None of them may be named as a source's secret (Z39)."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get_value(self, var: str, *args: Any, **kwargs: Any) -> Any:
        self.names.add(var)
        return super().get_value(var, *args, **kwargs)
