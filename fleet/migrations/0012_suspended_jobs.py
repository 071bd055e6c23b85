from django.db import migrations, models

from edges.online_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0011_exclusions"),
    ]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="suspended_pods",
            field=models.PositiveIntegerField(null=True),
        ),
        AddIndexOnline(
            model_name="workload",
            index=models.Index(
                condition=models.Q(("suspended_pods__gt", 0)), fields=["cluster"], name="suspended_jobs"
            ),
        ),
    ]
