import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Sum

USES = ("used", "idle", "unmeasured", "unallocated", "out_of_service", "unknown")


def add_up(apps, schema_editor) -> None:
    """Makes the sums of namespaces from those of owners."""
    owners = apps.get_model("health", "OwnerUsage").objects.order_by()
    rows = owners.values("cluster_id", "day", "pools", "namespace")
    model = apps.get_model("health", "NamespaceUsage")
    sums = rows.annotate(**{f"sum_of_{use}": Sum(use) for use in USES})
    model.objects.bulk_create(
        (model(**{name.removeprefix("sum_of_"): value for name, value in row.items()}) for row in sums.iterator()),
        batch_size=1000,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0005_sorted_pools"),
        ("health", "0004_usage"),
    ]

    operations = [
        migrations.DeleteModel("PoolUsage"),
        migrations.CreateModel(
            name="NamespaceUsage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("pools", models.TextField(blank=True)),
                ("namespace", models.CharField(blank=True, max_length=253)),
                ("used", models.FloatField(default=0)),
                ("idle", models.FloatField(default=0)),
                ("unmeasured", models.FloatField(default=0)),
                ("unallocated", models.FloatField(default=0)),
                ("out_of_service", models.FloatField(default=0)),
                ("unknown", models.FloatField(default=0)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="health_name_day_d210e6_idx")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "day", "pools", "namespace"),
                        name="one_row_of_namespace_usage_per_likeness",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            "OwnerUsage", models.Index(fields=["namespace", "workload", "day"], name="health_owne_namespa_4776e3_idx")
        ),
        migrations.RunPython(add_up, migrations.RunPython.noop),
    ]
