from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("health", "0021_gpu_minute_block")]

    operations = [
        migrations.RenameField("Finding", "resolved_because", "resolved_reason"),
        migrations.RenameField("Finding", "feedback_because", "feedback_reason"),
        migrations.RenameField("FindingAct", "because", "reason"),
        migrations.RenameField("Mute", "because", "reason"),
        migrations.RenameField("Mute", "ended_because", "ended_reason"),
        migrations.RenameField("PoolLimits", "because", "reason"),
        migrations.RenameField("RuleShadow", "because", "reason"),
        migrations.RenameField("RuleShadow", "ended_because", "ended_reason"),
    ]
