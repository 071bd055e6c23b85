"""Why an operand does not run on a node: the whole table of rules, the first that knows a cause wins. Pure.

Adding a cause = one rule in the file it belongs to and one line in that file's table.
"""

from health.stack.causes import (
    cluster,
    confidential,
    configuration,
    crash,
    cuda,
    dcgm,
    device_plugin,
    dra,
    driver,
    images,
    mig,
    missing,
    placement,
    runtime,
    sandbox,
    validator,
    vendors,
    waiting,
)
from health.stack.causes.base import Cause, CauseRule, ClaimSigns, Event, FreeRoom, PodSigns, Signs, Weight
from health.stack.causes.tenants import why_waits

WITHOUT_POD: tuple[CauseRule, ...] = (*placement.RULES, *missing.RULES)
WHEN_READY: tuple[CauseRule, ...] = (
    *device_plugin.WHEN_READY,
    *mig.WHEN_READY,
    *confidential.WHEN_READY,
    *sandbox.WHEN_READY,
    *dra.WHEN_READY,
)
# An image that is missing, or a container that cannot be made, is nobody else's fault. Else what is only the
# consequence of another operand's trouble comes before what its own words may mean, and the general last.
NOT_READY: tuple[CauseRule, ...] = (
    *waiting.FIRST,
    *images.RULES,
    *configuration.RULES,
    *waiting.THEN,
    *driver.RULES,
    *mig.RULES,
    *dra.RULES,
    *confidential.RULES,
    *sandbox.RULES,
    *vendors.RULES,
    *runtime.FIRST,
    *dcgm.RULES,
    *device_plugin.RULES,
    *runtime.RULES,
    *dcgm.LAST,
    *cuda.RULES,
    *validator.RULES,
    *cluster.RULES,
    *crash.BEFORE,
    runtime.ended,
    *runtime.LAST,
    *cluster.LAST,
    *crash.RULES,
    *confidential.WHEN_READY,
    *mig.WHEN_READY,
    *waiting.LAST,
    *crash.LAST,
)

__all__ = [
    "NOT_READY",
    "WHEN_READY",
    "WITHOUT_POD",
    "Cause",
    "ClaimSigns",
    "Event",
    "FreeRoom",
    "PodSigns",
    "Signs",
    "Weight",
    "why",
    "why_waits",
]


def why(signs: Signs) -> Cause | None:
    """None: it runs and is ready, or it has no pod here because nobody wants one."""
    if signs.pod is None:
        rules = WITHOUT_POD
    elif signs.pod.is_ready and not signs.pod.is_leaving:
        rules = WHEN_READY
    else:
        rules = NOT_READY
    return next((cause for rule in rules if (cause := rule(signs))), None)
