import django.db.models.expressions
import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0011_pools_of_gone_nodes"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="node",
            name="fleet_node_is_gpu__1af058_idx",
        ),
        migrations.RemoveIndex(
            model_name="node",
            name="fleet_node_is_gpu__47a612_idx",
        ),
        migrations.AddField(
            model_name="node",
            name="gpus_free",
            field=models.GeneratedField(
                db_persist=True,
                expression=django.db.models.expressions.CombinedExpression(
                    django.db.models.functions.comparison.Coalesce(models.F("gpu_allocatable"), 0),
                    "-",
                    models.F("gpu_allocated"),
                ),
                output_field=models.IntegerField(),
            ),
        ),
        migrations.AddField(
            model_name="node",
            name="state_code",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(models.Q(("upgrade_state", "upgrade-failed")), then=models.Value(0)),
                    models.When(
                        models.Q(
                            ("mig_config_state__in", ["pending", "rebooting"]),
                            ("mig_is_overdue", False),
                            ("mig_config_state", "rebooting"),
                        ),
                        then=models.Value(6),
                    ),
                    models.When(models.Q(("is_ready__isnull", True)), then=models.Value(2)),
                    models.When(models.Q(("is_ready", False)), then=models.Value(1)),
                    models.When(
                        models.Q(
                            ("upgrade_state__in", ["", "upgrade-done", "upgrade-failed", "upgrade-required"]),
                            _negated=True,
                        ),
                        then=models.Value(5),
                    ),
                    models.When(
                        models.Q(("mig_config_state__in", ["pending", "rebooting"]), ("mig_is_overdue", False)),
                        then=models.Value(6),
                    ),
                    models.When(
                        models.Q(
                            models.Q(
                                ("mig_config_state__in", ["pending", "rebooting"]),
                                ("mig_is_overdue", False),
                                _negated=True,
                            ),
                            models.Q(
                                (
                                    "gpu_expected__gt",
                                    django.db.models.functions.comparison.Coalesce(models.F("gpu_allocatable"), 0),
                                ),
                                ("slices_expected__gt", models.F("slices_allocatable")),
                                ("shares_expected__gt", models.F("shares_allocatable")),
                                _connector="OR",
                            ),
                        ),
                        then=models.Value(3),
                    ),
                    models.When(models.Q(("unresolved__gt", 0)), then=models.Value(4)),
                    models.When(models.Q(("is_unschedulable", True)), then=models.Value(7)),
                    models.When(models.Q(("is_held", True)), then=models.Value(8)),
                    default=models.Value(9),
                    output_field=models.IntegerField(),
                ),
                output_field=models.IntegerField(),
            ),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                fields=["is_gpu_node", "driver_version", "cluster", "name"], name="fleet_node_is_gpu__50a9fb_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                fields=["is_gpu_node", "state_code", "cluster", "name"], name="fleet_node_is_gpu__d468f0_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(fields=["is_gpu_node", "cluster", "name"], name="fleet_node_is_gpu__06cdaf_idx"),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                fields=["is_gpu_node", "-gpus_free", "cluster", "name"], name="fleet_node_is_gpu__87a17c_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(fields=["is_gpu_node", "-changed_at", "name"], name="fleet_node_is_gpu__544535_idx"),
        ),
    ]
