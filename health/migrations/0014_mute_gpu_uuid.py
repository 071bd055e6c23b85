from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0013_hours_without_xids"),
    ]

    operations = [
        migrations.AddField(
            model_name="mute",
            name="gpu_uuid",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
    ]
