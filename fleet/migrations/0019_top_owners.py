from django.db import migrations, models

from edges.online_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0018_severity_of_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="podplacement",
            name="top_owner",
            field=models.CharField(blank=True, db_default="", default="", max_length=320),
        ),
        AddIndexOnline(
            model_name="workload",
            index=models.Index(fields=["owner_uid"], name="workloads_of_owner"),
        ),
    ]
