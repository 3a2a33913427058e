"""Description of a Python interpreter, by itself.

healkit runs this file with other interpreters too, to ask them: it imports the standard library only, and parses in
Python 3.8.
"""

from __future__ import annotations

import json
import os
import platform
import site
import sys
import sysconfig


def describe() -> dict[str, object]:
    """Return its paths, the folders it loads from, and the values of a requirement's markers (PEP 508)."""
    paths = sysconfig.get_paths()
    installed = [*getattr(site, "getsitepackages", list)(), paths["purelib"], paths["platlib"]]
    library = sysconfig.get_config_var("LIBDIR") or paths["stdlib"]
    folders = [paths["stdlib"], paths["platstdlib"], library, *_loaded_from()]
    release = ".".join(map(str, sys.version_info[:3]))
    return {
        "executable": sys.executable,
        "prefix": sys.prefix,
        "version": release,
        "folders": list(dict.fromkeys(folders)),
        "sites": [path for path in dict.fromkeys(installed) if os.path.isdir(path)],
        "markers": {
            "implementation_name": sys.implementation.name,
            "implementation_version": release,
            "os_name": os.name,
            "platform_machine": platform.machine(),
            "platform_python_implementation": platform.python_implementation(),
            "platform_release": platform.release(),
            "platform_system": platform.system(),
            "platform_version": platform.version(),
            "python_full_version": platform.python_version(),
            "python_version": ".".join(map(str, sys.version_info[:2])),
            "sys_platform": sys.platform,
        },
    }


def _loaded_from() -> list[str]:
    """Return the folders libpython was really loaded from: Python may have been moved since it was built."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if "/libpython3" in line}
    except OSError:
        return []
    return [os.path.dirname(path) for path in sorted(loaded)]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(describe()))
