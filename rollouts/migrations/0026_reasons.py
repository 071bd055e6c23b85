from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0025_pending_commands")]

    operations = [
        migrations.RenameField("Approval", "because", "reason"),
        migrations.RenameField("Approval", "void_because", "void_reason"),
        migrations.RenameField("BreakGlass", "because", "reason"),
        migrations.RenameField("Command", "because", "reason"),
        migrations.RenameField("Cordon", "left_because", "left_reason"),
        migrations.RenameField("DomainBudget", "because", "reason"),
        migrations.RenameField("FollowedRollout", "because", "reason"),
        migrations.RenameField("Freeze", "because", "reason"),
        migrations.RenameField("Freeze", "ended_because", "ended_reason"),
        migrations.RenameField("GateAnswer", "because", "reason"),
        migrations.RenameField("FollowedAnswer", "because", "reason"),
        migrations.RenameField("ImagePull", "because", "reason"),
        migrations.RenameField("ImagePull", "ends_because", "ends_reason"),
        migrations.RenameField("LiveCheck", "because", "reason"),
        migrations.RenameField("LiveCheck", "override_because", "override_reason"),
        migrations.RenameField("MaintenanceWindow", "because", "reason"),
        migrations.RenameField("OptOut", "left_because", "left_reason"),
        migrations.RenameField("PendingCommand", "because", "reason"),
        migrations.RenameField("PlanEvent", "because", "reason"),
        migrations.RenameField("Stage", "sick_nodes_because", "sick_nodes_reason"),
        migrations.RenameField("Plan", "because", "reason"),
        migrations.RenameField("Stage", "because", "reason"),
        migrations.RenameField("Target", "because", "reason"),
        migrations.RenameField("Wave", "because", "reason"),
    ]
