from django.db import migrations, models

from edges.online_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0010_more_words"),
    ]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="exclusions",
            field=models.JSONField(null=True),
        ),
        AddIndexOnline(
            model_name="pod",
            index=models.Index(
                condition=models.Q(("exclusions__isnull", False)), fields=["cluster"], name="pods_with_exclusions"
            ),
        ),
    ]
