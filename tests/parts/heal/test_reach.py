"""Reach of a patch beyond the code that it replaces."""

from __future__ import annotations

import importlib
import tomllib
import types
from pathlib import Path

import pytest

import healkit.parts.explain
from healkit.parts.heal import reach
from healkit.parts.heal.reach import added_reach

pytestmark = pytest.mark.requirement("HEAL-8")
FRAME = "import pandas as pd\ndef tool(df, a=1):\n    return "

#: Code, a patch of it that reaches no further.
HARMLESS = [
    # imports of what was used already
    ("def tool(a): return math.sqrt(a)", "import math\ndef tool(a): return math.sqrt(a)"),
    ("def tool(a): return sqrt(a)", "from math import sqrt\ndef tool(a): return sqrt(a)"),
    ("def tool(a): return json.loads(a)", "import json\ndef tool(a): return json.loads(a)"),
    ("def tool(a): return re.sub('a', 'b', a)", "import re\ndef tool(a): return re.sub('a', 'b', a)"),
    ("def tool(a): return datetime.date(a, 1, 1)", "import datetime\ndef tool(a): return datetime.date(a, 1, 1)"),
    ("def tool(a): return datetime.now()", "from datetime import datetime\ndef tool(a): return datetime.now()"),
    ("def tool(a): return Counter(a)", "from collections import Counter\ndef tool(a): return Counter(a)"),
    ("def tool(a): return np.mean(a)", "import numpy as np\ndef tool(a): return np.mean(a)"),
    ("def tool(a): return numpy.mean(a)", "import numpy\ndef tool(a): return numpy.mean(a)"),
    ("def tool(a): return pd.Series(a).sum()", "import pandas as pd\ndef tool(a): return pd.Series(a).sum()"),
    ("def tool(a): return pd.read_csv(a)", "import pandas as pd\ndef tool(a): return pd.read_csv(a)"),
    ("def tool(a): return random.choice(a)", "import random\ndef tool(a): return random.choice(a)"),
    ("def tool(a): return os.path.join(a)", "import os\ndef tool(a): return os.path.join(a)"),
    ("def tool(a): return os.path.join(a)", "import os.path\ndef tool(a): return os.path.join(a)"),
    ("def tool(a): return Path(a).read_text()", "from pathlib import Path\ndef tool(a): return Path(a).read_text()"),
    ("def tool(a): plt.plot(a)", "import matplotlib.pyplot as plt\ndef tool(a): plt.plot(a)"),
    ("import ramdom\ndef tool(a): return ramdom.choice(a)", "import random\ndef tool(a): return random.choice(a)"),
    ("from maths import sqrt\ndef tool(a): return sqrt(a)", "from math import sqrt\ndef tool(a): return sqrt(a)"),
    ("from collections import Mapping", "from collections.abc import Mapping"),
    ("import os\ndef tool(a): return os.path.jion(a)", "import os\ndef tool(a): return os.path.join(a)"),
    ("import os\ndef tool(a): return os.getcwdd()", "import os\ndef tool(a): return os.getcwd()"),
    # new imports that reach nothing
    ("def tool(a): return a / 2", "import math\ndef tool(a): return math.floor(a / 2)"),
    ("def tool(a): return eval(a)", "import ast\ndef tool(a): return ast.literal_eval(a)"),
    ("def tool(a): return a", "import copy\ndef tool(a): return copy.deepcopy(a)"),
    ("def tool(a): return a", "from functools import reduce\nimport operator\ndef tool(a): return reduce(operator.mul, a)"),
    ("def tool(a): return a", "import itertools\ndef tool(a): return list(itertools.chain.from_iterable(a))"),
    ("def tool(a): return a", "from decimal import Decimal\ndef tool(a): return Decimal(a)"),
    ("def tool(a): return a", "import datetime\ndef tool(a): return datetime.time(a)"),
    ("def tool(a): return a", "from collections import abc\ndef tool(a): return isinstance(a, abc.Sequence)"),
    ("def tool(a): return a", "import re\ndef tool(a): return re.compile('a').findall(a)"),
    ("def tool(a): return a", "import statistics\ndef tool(a): return statistics.mean(a)"),
    # frames
    (FRAME + "df.units", FRAME + "df['units'].sum()"),
    (FRAME + "df.append(a)", FRAME + "pd.concat([df, a])"),
    (FRAME + "df.groupby('a').agg('sum')", FRAME + "df.groupby('a').agg('mean').reset_index()"),
    (FRAME + "df.merge(a)", FRAME + "df.merge(a, on='key', how='left')"),
    (FRAME + "df.copy", FRAME + "df.rename(columns={'a': 'b'})"),
    (FRAME + "df", FRAME + "df.to_dict('records')"),
    (FRAME + "df", FRAME + "df.to_json(orient='records')"),
    (FRAME + "df", FRAME + "df.to_csv(index=False)"),
    (FRAME + "df", FRAME + "df.drop_duplicates().sort_values('a').head(3).values.tolist()"),
    (FRAME + "df", FRAME + "df['open'] - df['load'] * df['system']"),
    (FRAME + "df", FRAME + "pd.to_numeric(df['a'].str.replace(',', ''))"),
    (FRAME + "df", FRAME + "pd.to_datetime(df['a']).dt.time"),
    (FRAME + "df", FRAME + "df.apply(lambda row: row['a'] + 1, axis=1)"),
    ("import numpy as np\ndef tool(a): return np.float(a)", "import numpy as np\ndef tool(a): return np.array(a).copy()"),
    ("import numpy as np\ndef tool(a): return a", "import numpy as np\ndef tool(a): return np.select([a > 1], [np.trace(a)])"),
    # names that only look like it
    ("def tool(open, close): return open", "def tool(open, close): return close - open"),
    ("def tool(ids): return ids", "def tool(ids): return [id for id in ids if id]"),
    ("def tool(a): return a", "def tool(a):\n    vars = sorted(a)\n    return vars[0]"),
    ("def tool(a): return a", "def tool(a): return {hash: len(hash) for hash in a}"),
    ("class A:\n    pass", "class A:\n    def __init__(self): self._os_name = 1"),
    ("def tool(a): return a", "def tool(a): return a.replace('a', 'b').strip().split()"),
    # what the tool did already
    ("def tool(a): return mcp.host.price(n=a) + a", "def tool(a): return mcp.host.price(n=a) * a"),
    ("def tool(a): return open('rates.txt').read()", "def tool(a): return float(open('rates.txt').read())"),
    ("def tool(a): return open('rate.txt').read()", "def tool(a): return open('rates.txt').read()"),
    ("def tool(a): open(a, 'w').write(1)", "def tool(a): open(a, 'a').write('1')"),
    ("def tool(a): return getattr(a, 'unit')", "def tool(a): return getattr(a, 'units')"),
    ("m = mcp\ndef tool(a): return m.host.price(a) + 1", "m = mcp\ndef tool(a): return m.host.price(a) - 1"),
    ("def tool(a): return a.__class__.__name__", "def tool(a): return a.__class__.__name__.lower()"),
    # drafts
    ("def tool(a) return math.sqrt(a)", "import math\ndef tool(a): return math.sqrt(a)"),
    ("def tool(a): return open(a", "def tool(a): return open(a)"),
]  # fmt: skip
#: Code, a patch, and what that reaches further, beyond the rows of tests/parts/heal/test_hostile_patches.py.
FURTHER = [
    ("def tool(a): return os.path.join(a)", "import os\ndef tool(a): return os.remove(a)", ["uses os.remove"]),
    ("import os\ndef tool(a): return os.path.join(a)", "import os\no = os", ["uses os itself"]),
    ("def tool(a): return json.loads(a)", "import os as json\njson.loads", ["imports os", "uses os.loads"]),
    ("import json\nimport pandas as pd", "import json\nimport pandas as pd\njson = pd\njson.read_csv('x')", ["uses .read_csv"]),
    ("import numpy as np", "import numpy as np\nnp.random.rand()", ["uses numpy.random.rand"]),
    ("import pandas as pd", "import pandas as pd\npd.io.common.os", ["uses .io", "uses .os", "uses pandas.io.common.os"]),
    ("m = mcp\nm.host.price()", "m = mcp\nm.host.wire()", ["names 'wire'"]),
    ("eval('1')", "eval('mcp.host.wire()')", ["names 'mcp.host.wire()'"]),
    ("open('rates.txt')", "open('/etc/passwd')", ["opens '/etc/passwd'"]),
    ("open(a)", "open(a, mode)", ["uses open to write"]),
    ("a.to_csv('x')", "a.to_csv('x')\na.to_csv('y')", ["uses .to_csv at 2 places instead of 1"]),
    ("df.agg('sum')", "df.agg('to_' + 'csv', path_or_buf='x')", ["uses .agg with a name that it makes"]),
    ("def tool(a): return os.path", "import os\nos.path\nos.system('id')", ["uses .system", "uses os.system"]),
    ("def tool(a) return a", "import os\nos.system('id')", ["imports os", "uses .system", "uses os.system"]),
    ("1", "ｅｖａｌ('1')", ["uses eval"]),
    ("1", "def f(eval=eval): eval('1')", ["uses eval"]),
    ("1", "class A:\n    eval = eval", ["uses eval"]),
    ("1", "def f():\n    global eval\n    eval = 1\n    eval('1')", ["uses eval"]),
    ("1", "def f(:", ["cannot be read"]),
    ("1", f"a = {'+'.join('a' * 2000)}", ["cannot be read"]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), HARMLESS)
def test_a_harmless_patch_reaches_no_further(before: str, after: str) -> None:
    assert added_reach(before, after) == ()


@pytest.mark.parametrize(("before", "after", "further"), FURTHER)
def test_added_reach_names_what_a_patch_reaches_further(before: str, after: str, further: list[str]) -> None:
    assert list(added_reach(before, after)) == further


def test_few_fixes_of_the_catalogue_reach_further_and_a_person_is_asked_about_those() -> None:
    held = {}
    fixes = 0
    for path in sorted(Path(healkit.parts.explain.__file__).parent.glob("*.toml")):
        for name, fix in tomllib.loads(path.read_text()).get("fix", {}).items():
            example, fixes = fix["example"], fixes + 1
            if found := added_reach(example["before"], example["after"]):
                held[name] = found
    assert fixes > 80
    assert set(held) == {"missing_folder", "whole_import"}


def test_a_module_that_reaches_out_is_found_behind_every_pure_one() -> None:
    """A pure module leads to others: `statistics.random._os`, `enum.bltns`."""
    open_paths = []
    for name in sorted(reach._PURE):
        for part, value in vars(importlib.import_module(name)).items():
            if not isinstance(value, types.ModuleType) or value.__name__.partition(".")[0] in reach._PURE:
                continue
            inner = [
                f"{name}.{part}",
                *(f"{name}.{part}.{one}" for one in vars(value) if one.isidentifier()),
            ][:20]
            open_paths += [one for one in inner if not added_reach("1", f"import {name}\n{one}")]
    assert open_paths == []
