from django.db import migrations, models
from django.db.models import OuterRef, Subquery

OVER = ("promoted", "rolled-back", "aborted", "discarded")


def end_the_holds_of_plans_that_are_over(apps, schema_editor):
    hold, plan = apps.get_model("rollouts", "Hold"), apps.get_model("rollouts", "Plan")
    ended = plan.objects.filter(pk=OuterRef("plan")).values("state_since")
    hold.objects.filter(plan__state__in=OVER).update(ended_at=Subquery(ended))


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0003_freezes")]

    operations = [
        migrations.AddField("hold", "ended_at", models.DateTimeField(null=True)),
        migrations.RunPython(end_the_holds_of_plans_that_are_over, migrations.RunPython.noop),
        migrations.AddConstraint(
            "hold",
            models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True), ("is_foreign", False)),
                fields=("node_uid",),
                name="one_change_at_a_time_per_node",
            ),
        ),
    ]
