from django.db import migrations, models


def list_pods_again(apps, schema_editor) -> None:
    """A row is written when its pod changes: for those that do not, the next turn lists them all."""
    apps.get_model("fleet", "Bookmark").objects.filter(kind="pods").update(resource_version="")


class Migration(migrations.Migration):
    dependencies = [("fleet", "0001_initial")]

    operations = [
        migrations.AddField("pod", "status", models.CharField(blank=True, default="", max_length=128)),
        migrations.AddField("pod", "crashed_at", models.DateTimeField(null=True)),
        migrations.RunPython(list_pods_again, migrations.RunPython.noop),
    ]
