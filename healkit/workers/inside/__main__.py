"""Entry point of a worker process.

`python -m healkit.workers.inside -f connection.json`.
"""

import os
import sys

import msgspec

from healkit.workers.inside import lockdown


def main() -> None:
    """Lock down while there is one thread, then import and start the kernel."""
    restrictions = msgspec.json.decode(
        os.environ.pop(lockdown.RESTRICTIONS_VARIABLE), type=lockdown.Restrictions
    )
    layers = lockdown.enter(restrictions)
    # After the lockdown, because these imports may start threads.
    if restrictions.bridge_fd < 0:
        from healkit.workers.inside.notebook_kernel_main import serve
    else:
        from healkit.workers.inside.kernel_main import serve
    serve(restrictions, layers, sys.argv[1:])


main()
