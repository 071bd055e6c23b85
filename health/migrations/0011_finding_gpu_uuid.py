from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0010_finding_resolved_because"),
    ]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="gpu_uuid",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.RemoveConstraint(model_name="finding", name="one_finding_at_a_time_per_subject"),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.UniqueConstraint(
                condition=models.Q(resolved_at__isnull=True),
                fields=["cluster", "rule", "subject", "gpu_uuid"],
                name="one_finding_at_a_time_per_subject",
            ),
        ),
    ]
