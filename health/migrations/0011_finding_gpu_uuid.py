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
    ]
