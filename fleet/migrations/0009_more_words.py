from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0008_label_conflicts"),
    ]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="more_words",
            field=models.CharField(blank=True, db_default="", default="", max_length=700),
        ),
    ]
