"""What was said to a plan, and by it, with its place in the API server's log."""

from dataclasses import dataclass

ENGINE = "engine"


@dataclass(frozen=True)
class Word:
    """What a person said and was answered, or what the plan's page said after a round."""

    after: int  # requests that the API server had been asked by then
    at: str
    who: str
    verb: str
    binds_rollbacks: bool = False  # of a freeze
    is_stop: bool = False  # of a freeze: it is the stop of the fleet
    is_whole: bool = True  # of a round: it went through to its end
    soaking: frozenset[str] = frozenset()  # of a round: nodes that are being judged after it
