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
