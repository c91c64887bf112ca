"""What Airflow's provider discovery reads: name, and the configuration section."""

from __future__ import annotations

from typing import Any

from local_cloaking import __version__


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata.

    Examples
    --------
    >>> sorted(get_provider_info()["config"]["local_cloaking"]["options"])
    ['audit_path']
    """
    return {
        "package-name": "local-cloaking",
        "name": "Local Cloaking",
        "description": "Measures Local Cloaking after an avatarisation and stops the DAG when it is too low.",
        "versions": [__version__],
        "config": {
            "local_cloaking": {
                "description": "Local Cloaking: the check after an avatarisation.",
                "options": {
                    "audit_path": {
                        "description": (
                            "Folder or object-storage URI for counts and records, shared by workers and API "
                            "server. By default the folder local_cloaking in AIRFLOW_HOME."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://conn@bucket/local_cloaking",
                        "default": None,
                    }
                },
            }
        },
    }
