from django.db import migrations, models
from django.db.models import F


def take_when_it_was_written_last(apps, schema_editor):
    muted = apps.get_model("health", "Finding").objects.filter(state="muted")
    muted.update(muted_at=F("updated_at"))


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0011_finding_gpu_uuid"),
    ]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="muted_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(take_when_it_was_written_last, migrations.RunPython.noop),
    ]
