"""All benchmarks, one after the other; `make bench`.

Each script prints one JSON object. The objects are written to `benchmarks/out/` and shown together. Compare the ratios:
absolute times belong to this machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    failed = 0
    for script in sorted(HERE.glob("bench_*.py")):
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        print(f"== {script.stem}")
        if done.returncode:
            failed = 1
            print(done.stderr)
            continue
        (out / f"{script.stem}.json").write_text(done.stdout)
        print(json.dumps(json.loads(done.stdout), indent=2))
    return failed


if __name__ == "__main__":
    sys.exit(main())
