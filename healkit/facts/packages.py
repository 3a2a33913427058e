"""Names of packages, and of parts that have moved."""

from __future__ import annotations

import sys

from healkit.facts.labels import similar
from healkit.facts.scene import Scene

#: Module → the package that has it, where the two names differ.
PACKAGES = {
    "Bio": "biopython", "Crypto": "pycryptodome", "MySQLdb": "mysqlclient", "OpenSSL": "pyOpenSSL",
    "PIL": "Pillow", "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python",
    "dateutil": "python-dateutil", "discord": "discord.py", "docx": "python-docx", "dotenv": "python-dotenv",
    "faiss": "faiss-cpu", "fitz": "PyMuPDF", "git": "GitPython", "github": "PyGithub",
    "imblearn": "imbalanced-learn", "jose": "python-jose", "jwt": "PyJWT", "kafka": "kafka-python",
    "ldap": "python-ldap", "Levenshtein": "python-Levenshtein", "magic": "python-magic",
    "mpl_toolkits": "matplotlib", "multipart": "python-multipart", "nacl": "PyNaCl", "osgeo": "GDAL",
    "pptx": "python-pptx", "psycopg2": "psycopg2-binary", "pytorch_lightning": "pytorch-lightning",
    "sentence_transformers": "sentence-transformers", "serial": "pyserial", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "skopt": "scikit-optimize", "slugify": "python-slugify",
    "telegram": "python-telegram-bot", "umap": "umap-learn", "usb": "pyusb", "wx": "wxPython", "yaml": "PyYAML",
    "zmq": "pyzmq",
}  # fmt: skip
#: Well-known packages that are imported by their own name.
SAME = frozenset((
    "altair", "bokeh", "catboost", "dask", "datasets", "django", "fastapi", "flask", "gensim", "geopandas",
    "h5py", "ipywidgets", "jax", "joblib", "keras", "langchain", "lightgbm", "matplotlib", "networkx", "nltk",
    "numba", "numpy", "openai", "openpyxl", "optuna", "pandas", "plotly", "polars", "psycopg", "pyarrow",
    "pydantic", "pymongo", "pytest", "redis", "requests", "scipy", "seaborn", "shap", "spacy", "sqlalchemy",
    "statsmodels", "streamlit", "sympy", "tabulate", "tensorflow", "tiktoken", "torch", "torchvision", "tqdm",
    "transformers", "wordcloud", "xgboost", "xlrd",
))  # fmt: skip
#: Parts of scikit-learn that have moved, and names of them that are elsewhere.
_MOVED = {
    "sklearn.cross_validation": "sklearn.model_selection", "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.learning_curve": "sklearn.model_selection", "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six", "sklearn.preprocessing.imputation": "sklearn.impute",
    "pandas.plotting._matplotlib.compat": "pandas.plotting", "scipy.misc.pilutil": "imageio",
}  # fmt: skip


def missing_module(scene: Scene) -> dict[str, str] | None:
    """Say which package has a module, or that the installed package has no such part."""
    name = getattr(scene.error, "name", None)
    if type(name) is not str or not all(part.isidentifier() for part in name.split(".")):
        return None
    parent, _, part = name.rpartition(".")
    if parent and parent in sys.modules:
        facts = {"about": "no_such_part", "owner": f"`{parent}`", "wanted": f"`{part}`"}
        return {**facts, "about": "part_moved", "instead": f"`{_MOVED[name]}`"} if name in _MOVED else facts
    facts = {"wanted": f"`{name}`"}
    if name in PACKAGES:
        return {
            **facts,
            "about": "package_other",
            "package": f"`{PACKAGES[name]}`",
            "install": f"`%pip install {PACKAGES[name]}`",
        }
    if name in SAME:
        return {**facts, "about": "package_same", "install": f"`%pip install {name}`"}
    loaded = {module.partition(".")[0] for module in list(sys.modules)}
    meant = next((one for one in sorted(SAME) if one in loaded and similar(name, one)), None)
    return {**facts, "about": "package_misspelt", "found": f"`{meant}`"} if meant else None
