# === orders: pandas
# %% orders.csv
"""
order_id,customer,amount,status,region,order_date
1,C101,250.0,paid,north,2025-01-15
2,C102,80.0,open,south,2025-01-20
3,C101,120.5,paid,north,2025-02-03
4,C103,310.0,open,east,2025-02-17
5,C102,99.9,paid,south,2025-03-01
"""
# %%
import pandas as pd

orders = pd.read_csv("orders.csv")
orders["order_date"] = pd.to_datetime(orders["order_date"])
# %%
orders["month"] = orders["order_date"].dt.month
paid = orders[(orders["status"] == "paid") & (orders["amount"] > 100)]
# %%
monthly = paid.groupby("month")["amount"].sum()
monthly
# === customers: pandas
# %%
import pandas as pd

customers = pd.DataFrame({"customer_id": [1, 2, 3], "name": ["Ada", "Ben", "Cleo"], "city": ["Ely", "Bath", "Ely"]})
sales = pd.DataFrame({"customer_id": [1, 1, 3, 2], "units": [4, 2, 7, 1], "price": [2.5, 3.0, 1.5, 8.0]})
# %%
sales["revenue"] = sales["units"] * sales["price"]
joined = sales.merge(customers, on="customer_id", how="left")
# %%
by_city = joined.groupby("city").agg(total=("revenue", "sum"), count=("revenue", "size"))
by_city.sort_values("total", ascending=False)
# === temperatures: pandas
# %%
import pandas as pd

days = pd.date_range("2025-03-01", periods=10, freq="D")
temperatures = pd.DataFrame({"low": range(10), "high": range(8, 18)}, index=days)
# %%
temperatures["mean"] = temperatures[["low", "high"]].mean(axis=1)
warm = temperatures.loc[temperatures["mean"] > 7]
# %%
first = warm.index[0].strftime("%d %B")
rolling = warm["mean"].rolling(window=3).mean().dropna()
(first, rolling.tolist())
# === grades: pandas
# %%
import pandas as pd

grades = pd.DataFrame({"student": ["Ann", "Bob", "Cid", "Dee"], "maths": [14, 9, 17, 12], "physics": [11, 13, 16, 8]})
grades = grades.set_index("student")
# %%
grades["average"] = grades.mean(axis=1)
grades["passed"] = grades["average"] >= 11
# %%
best = grades["average"].idxmax()
passed = grades.loc[grades["passed"], ["maths", "average"]]
passed.round(1), best
# === survey: pandas
# %% survey.csv
"""
respondent;age;answer;weight
r1;34;yes;1.5
r2;51;no;0.8
r3;27;yes;1.1
r4;45;maybe;1.0
"""
# %%
import pandas as pd

survey = pd.read_csv("survey.csv", sep=";")
# %%
codes = {"yes": 1, "no": 0, "maybe": 0.5}
survey["score"] = survey["answer"].map(codes)
# %%
weighted = (survey["score"] * survey["weight"]).sum() / survey["weight"].sum()
older = survey[survey["age"] > 30].reset_index(drop=True)
print(f"{weighted:.3f}")
older
# === stations: pandas
# %%
import pandas as pd

readings = pd.DataFrame({
    "station": ["A", "B", "A", "B", "A"],
    "pollutant": ["no2", "no2", "o3", "o3", "pm10"],
    "level": [21.0, 34.5, 55.0, 48.0, 17.5],
})
# %%
wide = readings.pivot_table(index="station", columns="pollutant", values="level")
wide = wide.fillna(0)
# %%
ratio = wide["no2"] / wide["o3"]
ratio.rename("ratio").to_frame().reset_index()
# === stock: pandas
# %%
import pandas as pd

stock = pd.DataFrame({"item_code": ["a1", "b2", "c3"], "quantity": [10, 0, 25], "unit_price": [1.25, 4.0, 0.5]})
new = pd.DataFrame({"item_code": ["d4"], "quantity": [5], "unit_price": [2.0]})
# %%
stock = pd.concat([stock, new], ignore_index=True)
stock["value"] = stock["quantity"] * stock["unit_price"]
# %%
missing = stock.loc[stock["quantity"] == 0, "item_code"].tolist()
total = stock["value"].sum()
{"missing": missing, "total": total}
# === texts: pandas
# %%
import pandas as pd

people = pd.DataFrame({"full_name": ["Ada Lovelace", "Alan Turing", "Grace Hopper"], "born": ["1815-12-10", "1912-06-23", "1906-12-09"]})
# %%
people["surname"] = people["full_name"].str.split(" ").str[1]
people["born"] = pd.to_datetime(people["born"], format="%Y-%m-%d")
# %%
people["decade"] = people["born"].dt.year // 10 * 10
people.sort_values("surname")[["surname", "decade"]]
# === shipments: pandas
# %% shipments.csv
"""
shipment,weight_kg,destination
s1,12.5,Oslo
s2,7.25,Lyon
s3,30.0,Oslo
s4,4.5,Porto
"""
# %% rates.csv
"""
destination,rate
Oslo,4.2
Lyon,2.1
Porto,3.3
"""
# %%
import pandas as pd

shipments = pd.read_csv("shipments.csv")
rates = pd.read_csv("rates.csv", index_col="destination")
# %%
shipments["cost"] = shipments["weight_kg"] * shipments["destination"].map(rates["rate"])
# %%
heavy = shipments.query("weight_kg > 5")
costs = heavy.groupby("destination", as_index=False)["cost"].mean()
costs
# === weeks: pandas
# %%
import pandas as pd

visits = pd.Series(range(1, 29), index=pd.date_range("2025-02-01", periods=28, freq="D"), name="visits")
# %%
weekly = visits.resample("W").sum()
change = weekly.pct_change().dropna()
# %%
table = pd.DataFrame({"visits": weekly, "change": change})
table.tail(2)
# === melted: pandas
# %%
import pandas as pd

scores = pd.DataFrame({"team": ["red", "blue"], "round_1": [3, 5], "round_2": [8, 2], "round_3": [1, 9]})
long = scores.melt(id_vars="team", var_name="round", value_name="points")
# %%
long["number"] = long["round"].str.replace("round_", "").astype(int)
ranks = long.groupby("number")["points"].rank(ascending=False)
# %%
winners = long[ranks == 1][["number", "team"]]
winners.set_index("number")["team"].to_dict()
# === sensors: pandas
# %%
import pandas as pd
import numpy as np

sensors = pd.DataFrame({"sensor": ["x", "y", "x", "y"], "reading": [1.0, np.nan, 3.0, 5.0], "hour": [0, 0, 1, 1]})
# %%
sensors["filled"] = sensors["reading"].ffill()
sensors["squared"] = sensors["filled"].apply(lambda value: value ** 2)
# %%
wide = sensors.pivot(index="hour", columns="sensor", values="squared")
wide.to_numpy().sum()
# === products: pandas
# %%
import pandas as pd

products = pd.DataFrame({"product": ["pen", "ink", "pad"], "price": [2.0, 7.5, 4.0], "sold": [100, 20, 35]})
# %%
def label(row):
    if row["price"] > 3:
        return "dear"
    return "cheap"

products["label"] = products.apply(label, axis=1)
# %%
products = products.rename(columns={"sold": "units_sold"})
products = products.drop(columns=["price"])
# %%
summary = products.groupby("label")["units_sold"].agg(["sum", "max"])
summary
# === loans: pandas
# %%
import pandas as pd

books = pd.DataFrame({"book_id": [10, 11, 12], "title": ["Emma", "Ulysses", "Dune"]})
loans = pd.DataFrame({"book": [12, 10, 12], "due": ["2025-05-01", "2025-05-03", "2025-05-09"], "days": [14, 7, 21]})
# %%
loans["due"] = pd.to_datetime(loans["due"])
late = loans[loans["due"] < pd.Timestamp("2025-05-05")]
# %%
named = late.merge(books, left_on="book", right_on="book_id")
named[["title", "days"]].sort_values(by="days").reset_index(drop=True)
# === quarters: pandas
# %%
import pandas as pd

budget = pd.DataFrame({"department": ["it", "hr", "it", "hr"], "quarter": ["q1", "q1", "q2", "q2"], "spent": [120, 80, 140, 60]})
# %%
table = budget.set_index(["department", "quarter"])["spent"].unstack("quarter")
table["total"] = table.sum(axis="columns")
# %%
table.loc["it", "total"] - table.loc["hr", "total"]
# === classes: pandas
# %%
import pandas as pd

ages = pd.DataFrame({"person": list("abcde"), "age": [5, 17, 34, 66, 81]})
ages["band"] = pd.cut(ages["age"], bins=[0, 18, 65, 120], labels=["child", "adult", "senior"])
# %%
counts = ages["band"].value_counts().sort_index()
shares = counts / len(ages)
# %%
for band, share in shares.items():
    print(f"{band}: {share:.0%}")
# === prices: pandas
# %%
import pandas as pd

prices = pd.DataFrame({"day": pd.to_datetime(["2025-01-02", "2025-01-03", "2025-01-06"]), "close": [101.0, 103.5, 99.0]})
prices = prices.set_index("day")
# %%
prices["return"] = prices["close"].pct_change()
prices["up"] = prices["return"] > 0
# %%
last = prices.iloc[-1]
worst = prices["return"].min()
round(worst, 4), bool(last["up"])
# === elections: pandas
# %% votes.json
"""
[{"district": "east", "party": "green", "votes": 120}, {"district": "east", "party": "blue", "votes": 90},
 {"district": "west", "party": "green", "votes": 60}, {"district": "west", "party": "blue", "votes": 150}]
"""
# %%
import json
import pandas as pd

with open("votes.json") as file:
    records = json.load(file)
votes = pd.DataFrame(records)
# %%
votes["share"] = votes["votes"] / votes.groupby("district")["votes"].transform("sum")
winners = votes.loc[votes.groupby("district")["votes"].idxmax()]
# %%
winners[["district", "party", "share"]].to_dict(orient="records")
# === cafes: pandas
# %% cafes.csv
"""
café,ville,places,note
Flore,Genève,42,4.5
Zürcher Hof,Zürich,18,4.1
Crémant,Genève,30,3.9
"""
# %%
import pandas as pd

cafes = pd.read_csv("cafes.csv")
cafes = cafes.rename(columns={"café": "name", "ville": "town"})
# %%
seats = cafes.groupby("town")["places"].sum().reset_index()
rated = cafes[~(cafes["note"] < 4)]
# %%
both = rated.merge(seats, on="town", suffixes=("", "_total"))
both[["name", "places_total"]].sort_values("name", ascending=False)
# === payroll: pandas
# %% payroll.csv
"""
employee_id,name,salary,bonus_pct,hired
7,Ada,54000,5,2019-04-01
8,Ben,61000,10,2021-09-15
9,Cleo,47500,0,2020-01-07
"""
# %%
import pandas as pd

payroll = pd.read_csv("payroll.csv", parse_dates=["hired"])
payroll["bonus"] = payroll["salary"] * payroll["bonus_pct"] / 100
# %%
teams = pd.DataFrame({"employee_id": [7, 8, 9], "team": ["red", "blue", "red"]})
joined = payroll.merge(teams, on="employee_id")
# %%
cost = joined.assign(total=joined["salary"] + joined["bonus"]).groupby("team")["total"].sum()
early = joined[joined["hired"] < pd.Timestamp("2021-01-01")]
cost["red"] - early["salary"].max()
# === clicks: pandas
# %% clicks.json
"""
{"page": ["home", "shop", "home", "help"], "user": ["u1", "u2", "u2", "u3"], "ms": [310, 1250, 480, 95]}
"""
# %%
import json
import pandas as pd

with open("clicks.json") as source:
    clicks = pd.DataFrame(json.load(source))
slow = clicks["ms"] > 300
# %%
counts = clicks.loc[slow, "page"].value_counts()
users = sorted(clicks["user"].unique())
# %%
print(", ".join(users))
counts.to_dict()
# === metered: pandas
# %%
import pandas as pd

meter = pd.DataFrame({
    "taken_at": ["2025-01-01 00:00", "2025-01-01 06:00", "2025-01-01 12:00", "2025-01-02 00:00"],
    "kwh": [1.5, 2.25, 4.0, 3.25],
})
meter["taken_at"] = pd.to_datetime(meter["taken_at"])
# %%
meter = meter.set_index("taken_at")
daily = meter["kwh"].resample("D").sum()
# %%
noon = meter.between_time("05:00", "13:00")
spread = (noon["kwh"] - noon["kwh"].mean()).abs().mean()
daily.max(), spread
# === duplicates: pandas
# %%
import pandas as pd

entries = pd.DataFrame({"email": ["a@x.org", "A@x.org ", "b@y.org"], "visits": [3, 4, 5]})
entries["email"] = entries["email"].str.strip().str.lower()
# %%
merged = entries.groupby("email", as_index=False)["visits"].sum()
domain = merged["email"].str.split("@").str[1]
# %%
merged = merged.assign(domain=domain).drop_duplicates(subset="domain")
merged.set_index("email")
# === bins: pandas
# %%
import numpy as np
import pandas as pd

values = pd.DataFrame({"group": ["a", "b", "a", "b", "a"], "value": [3.0, np.nan, 5.0, 8.0, 1.0]})
values["value"] = values["value"].fillna(values["value"].median())
# %%
values["rank"] = values.groupby("group")["value"].rank()
values["big"] = np.where(values["value"] > 3.5, "yes", "no")
# %%
crossed = pd.crosstab(values["group"], values["big"])
crossed.loc["a", "yes"] + crossed.loc["b", "no"]
# === lagged: pandas
# %%
import pandas as pd

level = pd.DataFrame({"week": range(1, 7), "stock_level": [40, 38, 45, 41, 30, 52]})
# %%
level["previous"] = level["stock_level"].shift(1)
level["change"] = level["stock_level"] - level["previous"]
level = level.dropna(subset=["previous"])
# %%
falls = level[(level["change"] < 0) | (level["stock_level"] > 50)]
falls.iloc[0]["week"], len(falls), falls["change"].cumsum().tolist()
# === wide: pandas
# %%
import pandas as pd

income = pd.DataFrame({"country": ["NO", "FR"], "2023": [61.0, 44.5], "2024": [63.5, 45.0]})
names = pd.Series({"NO": "Norway", "FR": "France"})
# %%
income["growth"] = income["2024"] / income["2023"] - 1
income["name"] = income["country"].map(names)
# %%
ordered = income.sort_values(by="growth", ascending=False)
first = ordered.iloc[0]
print(f"{first['name']}: {first['growth']:.2%}")
# === museums: pandas
# %% musees.csv
"""
musee,ville,entrees,prix
Orsay,Paris,3200,16
Fabre,Montpellier,410,9
Unterlinden,Colmar,260,13
Müllerhaus,Zürich,95,11
"""
# %%
import pandas as pd

museums = pd.read_csv("musees.csv")
# %%
museums["recette"] = museums["entrees"] * museums["prix"]
museums = museums.set_index("musee")
# %%
largest = museums["recette"].idxmax()
others = museums.drop(index=largest)
largest, others["recette"].sum(), museums.loc["Müllerhaus", "ville"]
# === members: pandas
# %% members.csv
"""
member_id,name,joined,fee
1,José,2023-02-01,40
2,Zoë,2024-05-10,55
3,Ann,2021-11-30,40
"""
# %%
import pandas as pd

members = pd.read_csv("members.csv")
payments = pd.DataFrame({"member_id": [1, 2, 2, 3], "paid": [40, 25, 30, 10]})
# %%
members["joined"] = pd.to_datetime(members["joined"], format="%Y-%m-%d")
members = members.rename(columns={"fee": "due"})
members = members[["member_id", "name", "joined", "due"]]
# %%
paid = payments.groupby("member_id")["paid"].sum().reset_index()
account = members.merge(paid, on="member_id", how="left")
account["open"] = account["due"] - account["paid"]
# %%
recent = account[account["joined"] >= pd.Timestamp("2022-01-01")]
print("Open:", ", ".join(recent["name"]))
account.loc[account["open"] > 0, ["name", "open"]]
# === orders_wide: pandas
# %%
import pandas as pd

wide = pd.DataFrame({"order": [1, 2, 3], "qty": ["2", "5", "1"], "note": ["ok", "late", "ok"], "temp": [0, 0, 0]})
wide = wide.drop(columns=["temp"])
# %%
wide["qty"] = wide["qty"].astype(int)
wide = wide.drop(columns="note").set_index("order")
# %%
codes = [str(number) for number in wide.index]
label = "-".join(map(str, wide["qty"]))
print(label, codes)
wide["qty"].mean()
# === times: pandas
# %%
import pandas as pd

log = pd.DataFrame({"at": ["2025-04-01 08:00", "2025-04-01 09:30", "2025-04-02 07:45"], "event": ["in", "out", "in"]})
log["at"] = pd.to_datetime(log["at"], format="%Y-%m-%d %H:%M")
# %%
opening = pd.Timestamp("2025-04-01 07:00")
log["hours"] = (log["at"] - opening).dt.total_seconds() / 3600
# %%
late = log[~(log["at"] < pd.Timestamp("2025-04-01 09:00"))]
late["hours"].tolist(), late["event"].iloc[-1]
