from django.db import migrations, models
from django.db.models import Case, CharField, F, Value, When


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0008_placements_of_pods"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="said_driver",
            field=models.GeneratedField(
                db_persist=True,
                expression=Case(
                    When(driver_unknown_since=None, then=F("driver_version")),
                    default=Value(""),
                    output_field=CharField(),
                ),
                output_field=models.CharField(max_length=64),
            ),
        ),
        migrations.RemoveIndex(model_name="node", name="fleet_node_is_gpu__50a9fb_idx"),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                fields=["is_gpu_node", "said_driver", "cluster", "name"], name="fleet_node_is_gpu__b54fb3_idx"
            ),
        ),
    ]
