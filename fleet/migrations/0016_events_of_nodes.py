from django.db import migrations, models

from edges.online_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0015_scaling_objects"),
    ]

    operations = [
        migrations.AddField(
            model_name="domainevent",
            name="node_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=253),
        ),
        migrations.AddField(
            model_name="domainevent",
            name="node_uid",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="domainevent",
            name="pool_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="domainevent",
            name="severity",
            field=models.CharField(blank=True, db_default="", default="", max_length=16),
        ),
        AddIndexOnline(
            model_name="domainevent",
            index=models.Index(fields=["cluster", "-id"], name="events_of_cluster"),
        ),
        AddIndexOnline(
            model_name="domainevent",
            index=models.Index(fields=["kind", "-id"], name="events_of_kind"),
        ),
        AddIndexOnline(
            model_name="domainevent",
            index=models.Index(fields=["severity", "-id"], name="events_of_severity"),
        ),
        AddIndexOnline(
            model_name="domainevent",
            index=models.Index(fields=["key", "-id"], name="events_of_key"),
        ),
        AddIndexOnline(
            model_name="domainevent",
            index=models.Index(
                condition=models.Q(("node_uid", ""), _negated=True),
                fields=["node_uid", "-at", "-id"],
                name="events_of_node",
            ),
        ),
    ]
