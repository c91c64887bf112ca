"""The page of Local Cloaking, for an Airflow that finds its plugins in this folder.

Steps aside where the installed package brings the plugin itself: loaded under one name twice, it would keep other
plugins from being loaded.
"""

from importlib.metadata import entry_points

if not any(found.name == "local_cloaking" for found in entry_points(group="airflow.plugins")):
    from local_cloaking.airflow.plugin import LocalCloakingPlugin  # noqa: F401 - found here by Airflow
