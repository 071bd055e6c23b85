from django.db import migrations, models

OF_CLUSTER = [("required", "Required"), ("none", "None")]
OF_POOL = [("as-cluster", "As Cluster"), *OF_CLUSTER]


class Migration(migrations.Migration):
    dependencies = [("fleet", "0005_physical_gpus")]

    operations = [
        migrations.AddField(
            "cluster", "approval", models.CharField(choices=OF_CLUSTER, default="required", max_length=16)
        ),
        migrations.AddField("pool", "approval", models.CharField(choices=OF_POOL, default="as-cluster", max_length=16)),
    ]
