from django.db import migrations, models


def list_pods_again(apps, _):
    """Makes observers list pods again: a watch alone would not fill the new column of pods that do not change."""
    apps.get_model("fleet", "Bookmark").objects.filter(kind="pods").update(resource_version="")


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0005_sorted_pools"),
    ]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="container_settings",
            field=models.JSONField(default=dict),
        ),
        migrations.RunPython(list_pods_again, migrations.RunPython.noop),
    ]
