from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("fleet", "0017_critical_findings_of_nodes")]

    operations = [
        migrations.RenameField("Node", "not_ready_because", "not_ready_reason"),
        migrations.RenameField("Pod", "waiting_because", "waiting_reason"),
    ]
