from django.db import migrations


def to_timeouts(apps, schema_editor):
    _rename(apps, "patience_s", "timeout_s")


def to_patience(apps, schema_editor):
    _rename(apps, "timeout_s", "patience_s")


def _rename(apps, old: str, new: str) -> None:
    """In the options of every gate. What was sealed stays as it was: its hash is of it."""
    for stage in apps.get_model("rollouts", "Stage").objects.only("pk", "gate_options").iterator():
        options = {
            gate: {new if name == old else name: value for name, value in written.items()}
            for gate, written in stage.gate_options.items()
        }
        if options != stage.gate_options:
            stage.gate_options = options
            stage.save(update_fields=["gate_options"])


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0003_foreign_templates")]

    operations = [
        migrations.RenameField("stage", "patience_s", "timeout_s"),
        migrations.RunPython(to_timeouts, to_patience),
    ]
