from django.db import migrations, models

CHOICES = [("as-pool", "As Pool"), ("none", "None"), ("pack", "Pack"), ("spread", "Spread")]


def class_placement() -> models.CharField:
    return models.CharField(choices=CHOICES, db_default="as-pool", default="as-pool", max_length=8)


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0021_lifecycle_conditions"),
    ]

    operations = [
        migrations.AddField(model_name="pool", name="training_placement", field=class_placement()),
        migrations.AddField(model_name="pool", name="inference_placement", field=class_placement()),
        migrations.AddField(model_name="pool", name="development_placement", field=class_placement()),
    ]
