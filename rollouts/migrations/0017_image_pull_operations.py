import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The tables of the old image pulls stay: workers of the version before read them during an upgrade."""

    dependencies = [
        ("operations", "0011_image_pulls"),
        ("rollouts", "0016_plan_warm_up_s"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name="pulljob", name="pull"),
                migrations.DeleteModel(name="ImagePull"),
                migrations.DeleteModel(name="PullJob"),
            ]
        ),
        migrations.CreateModel(
            name="PlanPull",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("to_version", models.CharField(max_length=64)),
                ("nodes_each", models.PositiveSmallIntegerField()),
                ("left_out", models.CharField(blank=True, max_length=500)),
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="plan_pull",
                        to="operations.operation",
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="image_pulls", to="rollouts.plan"
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
    ]
