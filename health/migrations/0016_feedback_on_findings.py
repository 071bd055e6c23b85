from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("health", "0015_allocated_hours")]

    operations = [
        migrations.RenameField("finding", "verdict", "feedback"),
        migrations.RenameField("finding", "verdict_by", "feedback_by"),
        migrations.RenameField("finding", "verdict_because", "feedback_because"),
    ]
