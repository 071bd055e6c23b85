from django.db import migrations, models

LONGEST_TITLE, LONGEST_SUMMARY = 70, 140


def split_texts(apps, _schema_editor):
    """Rewrites the texts of findings. The next evaluation replaces those of unresolved findings."""
    findings = apps.get_model("health", "Finding").objects
    for row in findings.only("sentence", "action", "probable_cause", "facts").iterator(chunk_size=500):
        title = row.sentence if len(row.sentence) <= LONGEST_TITLE else f"{row.sentence[: LONGEST_TITLE - 1]}…"
        evidence = [
            {"label": label, "value": value, "unit": ""}
            for label, value in row.facts.items()
            if isinstance(value, str | int | float)
        ]
        findings.filter(pk=row.pk).update(
            title=title,
            summary="" if title == row.sentence else row.sentence[:LONGEST_SUMMARY],
            causes=[row.probable_cause] if row.probable_cause else [],
            steps=[row.action] if row.action else [],
            evidence=evidence,
        )


class Migration(migrations.Migration):
    dependencies = [("health", "0002_saved_views")]

    operations = [
        migrations.RenameField("finding", "cause", "fingerprint"),
        migrations.RenameField("finding", "evidence", "facts"),
        migrations.AddField("finding", "title", models.CharField(max_length=LONGEST_TITLE, default=""), False),
        migrations.AddField("finding", "summary", models.CharField(max_length=LONGEST_SUMMARY, blank=True, default="")),
        migrations.AddField("finding", "evidence", models.JSONField(default=list)),
        migrations.AddField("finding", "causes", models.JSONField(default=list)),
        migrations.AddField("finding", "steps", models.JSONField(default=list)),
        migrations.RunPython(split_texts, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("finding", "sentence"),
        migrations.RemoveField("finding", "probable_cause"),
        migrations.RemoveField("finding", "action"),
    ]
