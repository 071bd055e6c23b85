"""Whom a more important pod may push aside: the fewest, the least important, the youngest."""

from simulator.actors.objects import Obj, is_terminating, spec
from simulator.quantities import Amounts, requests


def importance(pod: Obj) -> int:
    return int(spec(pod).get("priority") or 0)


def may_preempt(pod: Obj) -> bool:
    return spec(pod).get("preemptionPolicy", "PreemptLowerPriority") != "Never"


def victims(pod: Obj, residents: list[Obj], missing: Amounts) -> list[Obj] | None:
    """Who must go so that `missing` is free. None: not even all lesser pods would do."""
    lesser = [each for each in residents if importance(each) < importance(pod) and not is_terminating(each)]
    lesser.sort(key=lambda each: (importance(each), _reversed(each["metadata"]["creationTimestamp"])))
    chosen: list[Obj] = []
    left = Amounts(missing)
    for each in lesser:
        if all(amount <= 0 for amount in left.values()):
            break
        freed = requests(each)
        if any(left[key] > 0 and freed[key] for key in left):
            chosen.append(each)
            left.subtract({key: freed[key] for key in left})
    return chosen if all(amount <= 0 for amount in left.values()) else None


def cost(chosen: list[Obj]) -> tuple[int, int]:
    """The lowest is best: the most important victim first, then how many there are."""
    return (max((importance(each) for each in chosen), default=-(2**31)), len(chosen))


def _reversed(text: str) -> str:
    return "".join(chr(0x10FF - ord(char)) for char in text)
