import pandas as pd


def busiest_region(sales: list[dict]) -> str:
    """Return the region that sold the most units."""
    table = pd.DataFrame(sales)
    return table.groupby("region")["units"].sum().idxmax()
