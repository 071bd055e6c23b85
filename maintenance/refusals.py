"""The refusals of commands on cases. `config.errors` turns them into HTTP answers."""


class CaseRefused(Exception):
    """The command is refused; the sentence says what is so now, or what to do instead."""
