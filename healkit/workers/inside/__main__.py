"""Entry of the worker process: `python -m healkit.workers.inside -f connection.json`."""

import os
import sys

import msgspec

from healkit.workers.inside import lockdown


def main() -> None:
    """Lock down while there is one thread, then import and start the kernel."""
    policy = msgspec.json.decode(os.environ.pop(lockdown.POLICY_VARIABLE), type=lockdown.Policy)
    layers = lockdown.enter(policy)
    # After the lock: their imports may start threads.
    if policy.bridge_fd < 0:
        from healkit.workers.inside.standalone import serve
    else:
        from healkit.workers.inside.app import serve
    serve(policy, layers, sys.argv[1:])


main()
