from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0009_placement_policy"),
    ]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="more_words",
            field=models.CharField(blank=True, db_default="", default="", max_length=700),
        ),
    ]
