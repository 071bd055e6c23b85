from django.db import migrations, models


def list_nodes_again(apps, _):
    """Makes observers list nodes again: a watch alone would not fill the new column of nodes that do not change."""
    apps.get_model("fleet", "Bookmark").objects.filter(kind="nodes").update(resource_version="")


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0007_queues"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="label_conflicts",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.RunPython(list_nodes_again, migrations.RunPython.noop),
    ]
