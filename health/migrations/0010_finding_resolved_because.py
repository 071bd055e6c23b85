from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0009_finding_as_bad_since"),
    ]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="resolved_because",
            field=models.CharField(blank=True, default="", max_length=60),
        ),
    ]
