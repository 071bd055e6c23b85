from django.db import migrations
from django.db.models import Max, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Left

AT_ONCE = 5000  # rows a transaction


def fill_severity(apps, schema_editor) -> None:
    """Fills the column of events of earlier versions from their facts, so that filters find them."""
    events = apps.get_model("fleet", "DomainEvent").objects.order_by()
    last = events.aggregate(last=Max("pk"))["last"] or 0
    for first in range(0, last + 1, AT_ONCE):
        some = events.filter(pk__gte=first, pk__lt=first + AT_ONCE, severity="", facts__has_key="severity")
        some.update(severity=Coalesce(Left(KT("facts__severity"), 16), Value("")))


class Migration(migrations.Migration):
    atomic = False  # it can be run again

    dependencies = [
        ("fleet", "0017_namespaces"),
    ]

    operations = [
        migrations.RunPython(fill_severity, migrations.RunPython.noop),
    ]
