from django.db import migrations, models


class Migration(migrations.Migration):
    """A hold is the label of a node; what a freeze does to plans is to bind them."""

    dependencies = [("rollouts", "0013_shown_bundles")]

    operations = [
        migrations.RemoveConstraint("freeze", "a_stop_is_of_everything"),
        migrations.RenameField("freeze", "holds_rollbacks", "binds_rollbacks"),
        migrations.AddConstraint(
            "freeze",
            models.CheckConstraint(
                condition=models.Q(
                    ("is_stop", False),
                    models.Q(("binds_rollbacks", True), ("cluster__isnull", True), ("until__isnull", True)),
                    _connector="OR",
                ),
                name="a_stop_is_of_everything",
            ),
        ),
    ]
