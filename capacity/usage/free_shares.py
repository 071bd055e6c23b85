"""The share of a pool's free GPUs that the usual pod could use, for each UTC day, from the samples of its hours."""

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any

from django.db.models import DateField, ExpressionWrapper, F, FloatField, Sum, Value
from django.db.models.fields import DateTimeField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, TruncDate

from capacity.free_gpus.stranded_gpus import StrandedBy
from capacity.models import FreeGpuSample
from capacity.usage.usage_lines import UsePart

OUT = (StrandedBy.NOT_READY, StrandedBy.CORDON)  # such GPUs are not unallocated
IN_DAY = timedelta(minutes=1)  # a sample has the end of its hour


class FreeShares:
    """Shares by pool and day. One query."""

    def __init__(self, pools: Collection[int], first: date, last: date) -> None:
        ended = ExpressionWrapper(F("hour") - Value(IN_DAY), output_field=DateTimeField())
        out = {f"out_{cause.name.lower()}": _sum_of(cause) for cause in OUT}
        samples: Any = FreeGpuSample.objects.filter(pool__in=pools)
        sums = samples.annotate(day=TruncDate(ended, output_field=DateField())).filter(day__gte=first, day__lte=last)
        sums = sums.order_by().values("pool", "day")
        self._shares: Mapping[tuple[int, date], float] = {
            (row["pool"], row["day"]): min(1.0, max(0.0, row["fit"] / free))
            for row in sums.annotate(all=Sum("free"), fit=Sum("usable"), **out)
            if (free := row["all"] - sum(row[name] for name in out)) > 1e-9
        }

    def split(self, keys: str, day: date, hours: float) -> dict[UsePart, float]:
        """Returns the parts of unallocated hours of nodes in these pools. They add up to the hours."""
        known = (self._shares.get((int(key), day)) for key in keys.split(",") if key)
        share = next((each for each in known if each is not None), None)
        if share is None:
            return {UsePart.NOT_SPLIT: hours}
        return {UsePart.USABLE: share * hours, UsePart.STRANDED: (1 - share) * hours}


def _sum_of(cause: StrandedBy) -> Coalesce:
    gpus = Cast(KeyTextTransform(cause.value, "stranded"), FloatField())
    return Coalesce(Sum(gpus), Value(0.0))
