"""Well-known names, and what other languages call them."""

from __future__ import annotations

#: Modules that are used by their own name; without those that are imported by accident (`this`, `antigravity`).
MODULES = frozenset((
    "abc", "argparse", "array", "ast", "asyncio", "base64", "binascii", "bisect", "calendar", "cmath", "codecs",
    "collections", "colorsys", "configparser", "contextlib", "copy", "csv", "dataclasses", "datetime",
    "decimal", "difflib", "enum", "errno", "fnmatch", "fractions", "functools", "gc", "getpass", "glob", "gzip",
    "hashlib", "heapq", "hmac", "html", "http", "inspect", "io", "ipaddress", "itertools", "json", "keyword",
    "locale", "logging", "math", "mimetypes", "operator", "os", "pathlib", "pickle", "platform", "pprint",
    "queue", "random", "re", "secrets", "shlex", "shutil", "signal", "socket", "sqlite3", "ssl", "stat",
    "statistics", "string", "struct", "subprocess", "sys", "tempfile", "textwrap", "threading", "time",
    "timeit", "tokenize", "traceback", "types", "typing", "unicodedata", "unittest", "urllib", "uuid",
    "warnings", "weakref", "xml", "zipfile", "zlib", "zoneinfo", "numpy", "pandas", "scipy", "matplotlib",
    "seaborn", "sklearn", "requests", "sympy", "networkx",
))  # fmt: skip

#: Usual abbreviations of modules.
ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "mpl": "import matplotlib as mpl",
    "sns": "import seaborn as sns",
    "sp": "import scipy as sp",
    "nx": "import networkx as nx",
    "dt": "import datetime as dt",
    "et": "import xml.etree.ElementTree as et",
    "ET": "import xml.etree.ElementTree as ET",
    "tf": "import tensorflow as tf",
    "sk": "import sklearn as sk",
}

_HOMES = {
    "collections": "Counter defaultdict OrderedDict deque namedtuple ChainMap",
    "collections.abc": "Callable Hashable Iterable Iterator Mapping MutableMapping MutableSequence Sequence Sized",
    "typing": "Any Dict List Optional Tuple Union Set FrozenSet Type NamedTuple TypedDict Literal Protocol TypeVar Generic",
    "dataclasses": "dataclass field asdict astuple",
    "datetime": "datetime timedelta date timezone",
    "decimal": "Decimal ROUND_HALF_UP ROUND_DOWN getcontext",
    "enum": "Enum IntEnum auto",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache wraps cmp_to_key total_ordering cached_property cache",
    "itertools": "chain combinations permutations product accumulate groupby islice zip_longest cycle count repeat "
    "takewhile dropwhile starmap pairwise tee combinations_with_replacement",
    "math": "sqrt ceil floor pi gcd factorial log log2 log10 sin cos tan isclose hypot inf prod comb perm lcm exp atan2 "
    "radians degrees isnan isqrt fabs trunc nan fsum",
    "statistics": "mean median mode stdev variance pstdev pvariance multimode fmean",
    "operator": "itemgetter attrgetter methodcaller",
    "heapq": "heappush heappop heapify nlargest nsmallest heappushpop",
    "bisect": "bisect bisect_left bisect_right insort",
    "pathlib": "Path PurePath",
    "random": "randint choice shuffle sample uniform randrange seed choices",
    "copy": "deepcopy",
    "re": "findall finditer fullmatch",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation Template",
    "contextlib": "contextmanager suppress closing",
    "textwrap": "dedent wrap shorten",
    "abc": "ABC abstractmethod",
    "io": "StringIO BytesIO",
    "json": "JSONDecodeError loads dumps",
    "time": "sleep perf_counter",
    "types": "SimpleNamespace",
    "urllib.parse": "urlencode urlparse quote unquote urljoin parse_qs quote_plus unquote_plus",
    "zoneinfo": "ZoneInfo",
    "uuid": "uuid4",
    "pprint": "pprint pformat",
    "hashlib": "sha256 md5 sha1",
    "unicodedata": "normalize",
    "difflib": "SequenceMatcher get_close_matches",
    "csv": "DictReader DictWriter",
    "numbers": "Number",
}
#: Where a name is imported from, for names that mean one thing to most people.
HOMES = {name: module for module, names in _HOMES.items() for name in names.split()}

#: Names of other languages and of Python 2 → Python's name.
FOREIGN_NAMES = {
    "true": "True", "false": "False", "TRUE": "True", "FALSE": "False", "null": "None", "NULL": "None", "nil": "None",
    "none": "None", "undefined": "None", "xrange": "range", "unicode": "str", "raw_input": "input", "long": "int",
    "basestring": "str", "unichr": "chr", "izip": "zip", "imap": "map", "ifilter": "filter", "this": "self",
    "println": "print", "printf": "print", "echo": "print", "strlen": "len", "length": "len", "size": "len",
    "sizeof": "len", "string": "str", "String": "str", "integer": "int", "Integer": "int", "Int": "int",
    "parseInt": "int", "parseFloat": "float", "boolean": "bool", "Boolean": "bool", "Array": "list", "array": "list",
    "maximum": "max", "minimum": "min", "double": "float", "char": "chr", "Exeption": "Exception",
    "Error": "Exception", "StandardError": "Exception", "absolute": "abs", "PI": "3.141592653589793",
}  # fmt: skip

#: Functions and classes that are elsewhere, or renamed: `module.name` → what to write.
MOVED = {
    "time.clock": "time.perf_counter", "string.letters": "string.ascii_letters", "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase", "string.maketrans": "str.maketrans", "itertools.izip": "zip",
    "itertools.imap": "map", "itertools.ifilter": "filter", "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd", "os.errno": "errno", "inspect.getargspec": "inspect.getfullargspec", "math.abs": "abs", "math.max": "max",
    "math.min": "min", "math.round": "round", "math.sum": "sum", "math.mean": "statistics.mean",
    "math.average": "statistics.mean", "math.median": "statistics.median", "math.PI": "math.pi", "math.E": "math.e",
    "math.power": "math.pow", "math.ceiling": "math.ceil", "random.rand": "random.random",
    "random.random_int": "random.randint", "random.integer": "random.randint", "json.parse": "json.loads",
    "json.stringify": "json.dumps", "json.decode": "json.loads", "json.encode": "json.dumps", "re.replace": "re.sub",
    "statistics.average": "statistics.mean", "statistics.avg": "statistics.mean", "statistics.std": "statistics.stdev",
    "collections.Mapping": "collections.abc.Mapping", "collections.Iterable": "collections.abc.Iterable",
    "collections.Sequence": "collections.abc.Sequence", "collections.Callable": "collections.abc.Callable",
    "collections.MutableMapping": "collections.abc.MutableMapping", "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.quote": "urllib.parse.quote", "urllib.unquote": "urllib.parse.unquote",
    "asyncio.async": "asyncio.ensure_future", "functools.map": "map", "functools.filter": "filter",
    "operator.div": "operator.truediv", "string.upper": "str.upper",
    "string.lower": "str.lower", "string.split": "str.split", "string.strip": "str.strip",
    "string.replace": "str.replace", "datetime.now": "datetime.datetime.now",
    "base64.encodestring": "base64.encodebytes", "base64.decodestring": "base64.decodebytes",
}  # fmt: skip

#: Methods of other languages: name → what to write for `{o}.name({a})`; `{0}` is the first argument.
FOREIGN_METHODS = {
    "push": ("{o}.append({a})",), "push_back": ("{o}.append({a})",), "add": ("{o}.append({a})",),
    "append": ("{o}.add({a})", "{o} + {0}"), "contains": ("{0} in {o}",), "includes": ("{0} in {o}",),
    "has": ("{0} in {o}",), "has_key": ("{0} in {o}",), "hasOwnProperty": ("{0} in {o}",), "containsKey": ("{0} in {o}",),
    "iteritems": ("{o}.items()",), "itervalues": ("{o}.values()",), "iterkeys": ("{o}.keys()",),
    "toLowerCase": ("{o}.lower()",), "toUpperCase": ("{o}.upper()",), "lowercase": ("{o}.lower()",),
    "uppercase": ("{o}.upper()",), "to_lower": ("{o}.lower()",), "to_upper": ("{o}.upper()",), "tolower": ("{o}.lower()",),
    "toupper": ("{o}.upper()",), "downcase": ("{o}.lower()",), "upcase": ("{o}.upper()",), "trim": ("{o}.strip()",),
    "trimStart": ("{o}.lstrip()",), "trimEnd": ("{o}.rstrip()",), "chomp": ("{o}.rstrip()",), "length": ("len({o})",),
    "len": ("len({o})",), "size": ("len({o})",), "count": ("len({o})",), "isEmpty": ("not {o}",), "is_empty": ("not {o}",),
    "empty": ("not {o}",), "indexOf": ("{o}.index({a})", "{o}.find({a})"), "index_of": ("{o}.index({a})",),
    "lastIndexOf": ("{o}.rfind({a})",), "find": ("{o}.index({a})",), "charAt": ("{o}[{0}]",), "get": ("{o}[{0}]",), "at": ("{o}[{0}]",),
    "substring": ("{o}[{0}:{1}]", "{o}[{0}:]"), "substr": ("{o}[{0}:{1}]", "{o}[{0}:]"), "slice": ("{o}[{0}:{1}]", "{o}[{0}:]"),
    "startsWith": ("{o}.startswith({a})",), "endsWith": ("{o}.endswith({a})",), "starts_with": ("{o}.startswith({a})",),
    "ends_with": ("{o}.endswith({a})",), "replaceAll": ("{o}.replace({a})",), "gsub": ("{o}.replace({a})",),
    "toString": ("str({o})",), "to_s": ("str({o})",), "to_i": ("int({o})",), "to_string": ("str({o})",), "equals": ("{o} == {0}",),
    "concat": ("{o} + {0}",), "addAll": ("{o}.extend({a})",), "push_all": ("{o}.extend({a})",), "unshift": ("{o}.insert(0, {a})",),
    "shift": ("{o}.pop(0)",), "first": ("{o}[0]",), "last": ("{o}[-1]",), "reverse": ("{o}[::-1]",), "reversed": ("{o}[::-1]",),
    "sort": ("sorted({o})",), "sorted": ("sorted({o})",), "sum": ("sum({o})",), "max": ("max({o})",), "min": ("min({o})",),
    "mean": ("sum({o}) / len({o})",), "average": ("sum({o}) / len({o})",), "sqrt": ("{o} ** 0.5",), "join": ("{0}.join({o})",),
    "map": ("map({0}, {o})",), "filter": ("filter({0}, {o})",), "keySet": ("{o}.keys()",), "entries": ("{o}.items()",),
    "delete": ("{o}.remove({a})",), "removeAt": ("{o}.pop({a})",), "abs": ("abs({o})",),
    "round": ("round({o})",), "isnumeric": ("str({o}).isnumeric()",), "isdigit": ("str({o}).isdigit()",), "lower": ("str({o}).lower()", ),
    "upper": ("str({o}).upper()",), "strip": ("str({o}).strip()",), "decode": ("{o}",), "encode": ("{o}",), "items": ("enumerate({o})",),
    "discard": ("{o}.remove({a})",), "update": ("{o}.extend({a})",), "extend": ("{o}.update({a})",),
    "unique": ("list(set({o}))",), "flatten": ("sum({o}, [])",),
}  # fmt: skip


def import_for(name: str) -> str | None:
    """Return the line that imports a well-known name, None for any other."""
    if name in ALIASES:
        return ALIASES[name]
    if name in HOMES:
        return f"from {HOMES[name]} import {name}"
    return f"import {name}" if name in MODULES else None
