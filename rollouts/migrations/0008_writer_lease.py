import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0007_rollback_stage")]

    operations = [
        migrations.RenameModel("Claim", "WriterLease"),
        migrations.AlterField(
            "writerlease",
            "cluster",
            models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="writer_lease", to="fleet.cluster"
            ),
        ),
    ]
