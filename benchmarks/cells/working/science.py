# === vectors: numpy
# %%
import numpy as np

points = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
center = points.mean(axis=0)
# %%
shifted = points - center
lengths = np.linalg.norm(shifted, axis=1)
# %%
far = points[lengths > 1]
np.concatenate([far, center.reshape(1, -1)])
# === weights: numpy
# %%
import numpy as np

weights = np.array([0.2, 0.3, 0.5])
samples = np.arange(12).reshape(4, 3)
# %%
scores = samples @ weights
order = np.argsort(scores)
# %%
best = samples[order[-1]]
print(best, np.round(scores.max(), 2))
# === integral: numpy
# %%
import numpy as np

x = np.linspace(0, 1, 101)
y = x ** 2
# %%
area = np.trapezoid(y, x)
mask = (x > 0.25) & (x < 0.75)
# %%
middle = np.trapezoid(y[mask], x[mask])
round(float(area), 4), round(float(middle), 4)
# === image: numpy
# %%
import numpy as np

image = np.zeros((4, 6), dtype=np.float64)
image[1:3, 2:5] = 1.0
# %%
rows, columns = image.shape
bright = np.argwhere(image > 0.5)
# %%
profile = image.sum(axis=0)
corner = image[rows - 1, columns - 1]
np.append(profile, corner)
# === random: numpy
# %%
import numpy as np

rng = np.random.default_rng(7)
data = rng.normal(size=(50, 2))
# %%
means = data.mean(axis=0)
covariance = np.cov(data, rowvar=False)
# %%
valid = np.isin(np.arange(5), [1, 3])
total = np.prod(covariance.shape)
(np.round(means, 3), valid.sum(), total)
# === line: sklearn
# %%
import numpy as np
from sklearn.linear_model import LinearRegression

hours = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
marks = np.array([52.0, 55.0, 61.0, 64.0, 70.0])
# %%
features = hours.reshape(-1, 1)
model = LinearRegression()
model.fit(features, marks)
# %%
predicted = model.predict(np.array([[6.0], [7.0]]))
np.round(predicted, 1)
# === iris: sklearn
# %%
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

iris = load_iris()
X_train, X_test, y_train, y_test = train_test_split(iris.data, iris.target, test_size=0.3, random_state=1)
# %%
classifier = LogisticRegression(max_iter=500)
classifier.fit(X_train, y_train)
# %%
score = classifier.score(X_test, y_test)
names = [iris.target_names[label] for label in classifier.predict(X_test[:3])]
round(score, 3), names
# === encoded: sklearn
# %%
import pandas as pd
from sklearn.preprocessing import OneHotEncoder, StandardScaler

homes = pd.DataFrame({"area": [50.0, 80.0, 120.0], "rooms": [2, 3, 5], "town": ["Ely", "Bath", "Ely"]})
# %%
scaler = StandardScaler()
scaled = scaler.fit_transform(homes[["area", "rooms"]])
# %%
encoder = OneHotEncoder(sparse_output=False)
towns = encoder.fit_transform(homes[["town"]])
# %%
names = encoder.get_feature_names_out().tolist()
names, scaled.round(2).tolist(), towns.sum(axis=0).tolist()
# === growth: matplotlib
# %%
import matplotlib.pyplot as plt

years = [2019, 2020, 2021, 2022]
members = [12, 18, 25, 41]
# %%
fig, ax = plt.subplots()
ax.plot(years, members, marker="o", label="members")
ax.set_xlabel("Year")
ax.set_title("Growth of the club")
# %%
ax.legend(loc="upper left")
ax
# === panels: matplotlib
# %%
import numpy as np
import matplotlib.pyplot as plt

x = np.linspace(0, 2 * np.pi, 20)
curves = {"sine": np.sin(x), "cosine": np.cos(x)}
# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3))
for ax, (name, values) in zip(axes, curves.items()):
    ax.plot(x, values, color="tab:blue")
    ax.set_title(name)
# %%
titles = [ax.get_title() for ax in axes]
fig.suptitle("Curves")
titles, fig.get_suptitle()
# === bars: matplotlib
# %%
import pandas as pd
import matplotlib.pyplot as plt

sales = pd.DataFrame({"region": ["north", "south", "east"], "units": [30, 45, 22]})
# %%
figure, axis = plt.subplots(figsize=(4, 3))
axis.bar(sales["region"], sales["units"], width=0.5)
axis.set_ylabel("Units")
# %%
heights = [patch.get_height() for patch in axis.patches]
axis.set_ylim(0, max(heights) * 1.1)
axis
# === frames: polars
# %%
import polars as pl

trips = pl.DataFrame({"driver": ["a", "b", "a", "c"], "distance": [12.0, 7.5, 30.2, 4.4], "minutes": [20, 15, 40, 9]})
# %%
trips = trips.with_columns((pl.col("distance") / pl.col("minutes") * 60).alias("speed"))
# %%
fast = trips.filter(pl.col("speed") > 30)
fast.group_by("driver").agg(pl.col("distance").sum()).sort("driver")
# === database: sqlalchemy
# %%
from sqlalchemy import create_engine, text

engine = create_engine("sqlite://")
connection = engine.connect()
connection.execute(text("CREATE TABLE pets (name TEXT, age INTEGER)"))
connection.execute(text("INSERT INTO pets VALUES ('Rex', 4), ('Tom', 9), ('Ivy', 2)"))
# %%
rows = connection.execute(text("SELECT name, age FROM pets WHERE age > :least"), {"least": 3}).fetchall()
# %%
names = [row.name for row in rows]
oldest = max(rows, key=lambda row: row.age)
names, oldest.age
# === distances: numpy
# %%
import numpy as np

towns = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
names = ["A", "B", "C"]
# %%
differences = towns[:, np.newaxis, :] - towns[np.newaxis, :, :]
distances = np.sqrt((differences ** 2).sum(axis=-1))
np.fill_diagonal(distances, np.inf)
# %%
nearest = distances.argmin(axis=1)
pairs = {names[i]: names[j] for i, j in enumerate(nearest)}
pairs, distances.min(axis=0).tolist()
# === stacked: numpy
# %%
import numpy as np

morning = np.array([4.0, 6.5, 5.0])
evening = np.array([9.0, 11.5, 8.0])
# %%
both = np.vstack([morning, evening])
spans = np.ptp(both, axis=0)
scaled = (both - both.min()) / (both.max() - both.min())
# %%
valid = ~np.isnan(scaled)
low = (scaled < 0.5) & valid
np.where(low.any(axis=0))[0], spans.round(1)
# === solve: numpy
# %%
import numpy as np

matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
target = np.array([3.0, 5.0])
# %%
solution = np.linalg.solve(matrix, target)
values, vectors = np.linalg.eigh(matrix)
# %%
check = np.allclose(matrix @ solution, target)
np.round(solution, 3), check, round(float(values[-1]), 3)
# === histogram: numpy
# %%
import numpy as np

readings = np.array([1.2, 3.4, 2.2, 5.9, 4.4, 2.8, 3.3])
edges = np.linspace(0, 6, 4)
# %%
counts, edges = np.histogram(readings, bins=edges)
centers = (edges[1:] + edges[:-1]) / 2
# %%
for center, count in zip(centers, counts):
    print(f"{center:.1f} {count}")
print(counts[len(counts) - 1], np.cumprod(counts).tolist())
# === pipeline: sklearn
# %%
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

people = pd.DataFrame({"age": [22, 35, 58, 41, 30, 63], "city": ["Ely", "Bath", "Ely", "York", "Bath", "York"], "bought": [0, 1, 1, 0, 0, 1]})
# %%
prepare = ColumnTransformer([("scale", StandardScaler(), ["age"]), ("encode", OneHotEncoder(handle_unknown="ignore"), ["city"])])
model = Pipeline([("prepare", prepare), ("classify", LogisticRegression(C=10.0))])
model.fit(people[["age", "city"]], people["bought"])
# %%
new = pd.DataFrame({"age": [25, 60], "city": ["Ely", "York"]})
chances = model.predict_proba(new)[:, 1]
chances.round(3)
# === clusters: sklearn
# %%
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

points = np.array([[1.0, 1.1], [0.9, 1.0], [5.0, 5.2], [5.1, 4.9]])
# %%
model = KMeans(n_clusters=2, n_init=10, random_state=3)
labels = model.fit_predict(points)
# %%
centers = model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]
score = silhouette_score(points, labels)
centers.round(2).tolist(), round(float(score), 3)
# === houses: sklearn
# %% houses.csv
"""
area,rooms,price
50,2,150
80,3,230
65,2,185
120,5,340
95,4,275
"""
# %%
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

houses = pd.read_csv("houses.csv")
features = houses[["area"]]
# %%
imputer = SimpleImputer(strategy="mean")
filled = imputer.fit_transform(features)
regression = LinearRegression().fit(filled, houses["price"])
# %%
predicted = regression.predict(filled)
actual = houses["price"]
error = root_mean_squared_error(actual, predicted)
round(error, 2), round(mean_absolute_error(actual, predicted), 2)
# === grid: sklearn
# %%
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

wine = load_wine(as_frame=True)
features, labels = wine.data[["alcohol", "hue"]], wine.target
# %%
tree = DecisionTreeClassifier(max_depth=3, random_state=0)
scores = cross_val_score(tree, features, labels, cv=3)
# %%
search = GridSearchCV(tree, {"max_depth": [1, 2, 3]}, cv=3)
search.fit(features, labels)
search.best_params_["max_depth"], round(scores.mean(), 3)
# === scatter: matplotlib
# %%
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(5)
x, y = rng.normal(size=20), rng.normal(size=20)
# %%
fig, ax = plt.subplots()
colors = matplotlib.colormaps["viridis"]
ax.scatter(x, y, s=25, color=colors(0.5), label="samples")
ax.grid(visible=True)
# %%
ax.set_title("Samples", fontsize=12)
ax.annotate("mean", xy=(x.mean(), y.mean()))
ax
# === histogram_plot: matplotlib
# %%
import matplotlib.pyplot as plt

waits = [3, 5, 2, 8, 7, 4, 4, 6, 5, 9]
labels = {"x": "Minutes", "y": "Share"}
# %%
figure, axes = plt.subplots(nrows=2, ncols=2, figsize=(6, 6))
shares, edges, patches = axes[0, 1].hist(waits, bins=4, density=True)
axes[0, 1].set_xlabel(labels["x"])
axes[1, 0].plot(waits, linestyle="--")
# %%
axes[1, 0].set_ylabel(labels["y"])
axes[0, 1].axvline(sum(waits) / len(waits), color="red")
axes[0, 1]
# === ranked: polars
# %%
import polars as pl

scores = pl.DataFrame({"player": ["ann", "bob", "cid", "ann"], "points": [12, 30, 7, 20], "day": ["mon", "mon", "tue", "tue"]})
days = pl.DataFrame({"day": ["mon", "tue"], "weight": [1.0, 2.0]})
# %%
joined = scores.join(days, on="day").with_columns((pl.col("points") * pl.col("weight")).alias("weighted"))
totals = joined.group_by("player").agg(pl.col("weighted").sum().alias("total"))
# %%
best = totals.sort("total", descending=True)
best.row(0), best.height
# === cleaned: polars
# %%
import polars as pl

raw = pl.DataFrame({"city": [" Oslo", "Lyon ", "Porto"], "2023": [10, 20, 30], "2024": [11, 19, 36]})
# %%
clean = raw.with_columns(pl.col("city").str.strip_chars().str.to_uppercase())
long = clean.unpivot(index="city", variable_name="year", value_name="count")
# %%
growth = long.filter(pl.col("year") == "2024").select(pl.col("count").sum())
growth.item() - long.filter(pl.col("city") == "OSLO")["count"].max()
# === lazy: polars
# %% trips.csv
"""
rider,km,cost
a,12.5,30
b,3.0,9
a,8.5,22
"""
# %%
import polars as pl

trips = pl.read_csv("trips.csv")
per_km = trips.with_columns((pl.col("cost") / pl.col("km")).round(2).alias("per_km"))
# %%
summary = per_km.group_by("rider", maintain_order=True).agg(pl.len().alias("trips"), pl.col("per_km").mean())
summary.to_dicts()
# === orm: sqlalchemy
# %%
from sqlalchemy import Column, ForeignKey, Integer, String, create_engine, func, select
from sqlalchemy.orm import Session, declarative_base, relationship

Base = declarative_base()

class Author(Base):
    __tablename__ = "authors"
    id = Column(Integer, primary_key=True)
    name = Column(String)
    books = relationship("Book", back_populates="author")

class Book(Base):
    __tablename__ = "books"
    id = Column(Integer, primary_key=True)
    title = Column(String)
    author_id = Column(Integer, ForeignKey("authors.id"))
    author = relationship("Author", back_populates="books")
# %%
engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
session = Session(engine)
session.add(Author(name="Austen", books=[Book(title="Emma"), Book(title="Persuasion")]))
session.add(Author(name="Woolf", books=[Book(title="Orlando")]))
session.commit()
# %%
query = select(Author.name, func.count(Book.id)).join(Book).group_by(Author.name).order_by(Author.name)
rows = session.execute(query).all()
first = session.scalars(select(Book).where(Book.title == "Orlando")).one()
rows, first.author.name
# === network: networkx
# %%
import networkx as nx

roads = nx.Graph()
roads.add_edge("Ely", "Bath", weight=4)
roads.add_edge("Bath", "York", weight=2)
roads.add_edge("Ely", "York", weight=9)
# %%
path = nx.shortest_path(roads, source="Ely", target="York", weight="weight")
length = nx.shortest_path_length(roads, "Ely", "York", weight="weight")
# %%
degrees = dict(roads.degree())
path[1], length, degrees["Bath"]
# === fitted: scipy
# %%
import numpy as np
from scipy import optimize, stats

x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
y = np.array([1.1, 2.9, 5.2, 7.1, 8.8])
# %%
def line(x, slope, offset):
    return slope * x + offset

parameters, covariance = optimize.curve_fit(line, x, y)
slope, offset = parameters
# %%
result = stats.linregress(x, y)
print(round(slope, 2), round(result.rvalue, 3), round(line(5, slope, offset), 1))
# === sales_sql: duckdb
# %%
import duckdb
import pandas as pd

sales = pd.DataFrame({"shop": ["n", "s", "n"], "item": ["pen", "ink", "ink"], "units": [5, 2, 4]})
database = duckdb.connect()
# %%
database.execute("CREATE TABLE sales AS SELECT * FROM (VALUES ('n', 'pen', 5), ('s', 'ink', 2), ('n', 'ink', 4)) AS t(shop, item, units)")
per_shop = database.sql("SELECT shop, SUM(units) AS total FROM sales GROUP BY shop ORDER BY shop").fetchall()
# %%
totals = {shop: int(total) for shop, total in per_shop}
totals["n"] - int(sales["units"].min())
