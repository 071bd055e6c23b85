from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0008_telemetry_source_exploding"),
    ]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="as_bad_since",
            field=models.DateTimeField(null=True),
        ),
    ]
