"""What kernsel's default predicts on public tables as they are, with categories and gaps, that nothing in kernsel was
tuned on, beside gradient boosting and a linear model.

    git clone --depth 1 https://github.com/vincentarelbundock/Rdatasets
    python benchmarks/rdatasets.py Rdatasets/csv [--rows 600] [--draws 1] [--kind regression] [--output FILE]

A draw takes at most ``--rows`` rows, at most 70 % of a table, to learn from, and up to 3000 others to test on. Figures:
for a regression the mean squared error in units of the variance of the rows to learn from, for classes the share
misclassified. LightGBM is as it comes, with categories as such; the linear model is ridge or logistic regression, its
regularisation by cross-validation, on standardised and one-hot columns, a gap being a level. Texts of over 40 different
values are left out for all. Several tables hold groups or heavy tails, and the rows to test on are few where tables are
small: read the medians and the counts, and single tables with care.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kernsel

Array = NDArray[Any]
LEVELS = 40
"""Different values that a column of texts has at the most, or it is left out."""

REGRESSIONS = """
AER/HousePrices:price AER/CPSSW8:earnings AER/CPS1988:wage AER/CASchools:read:math,district,school
AER/TeachingRatings:eval AER/NMES1988:visits Ecdat/Computers:price Ecdat/Diamond:price ggplot2/diamonds:price
ggplot2/mpg:hwy:cty ISLR/Carseats:Sales ISLR/College:Grad.Rate ISLR/Hitters:Salary ISLR/Wage:wage:logwage
ISLR/Credit:Balance:ID carData/SLID:wages carData/Salaries:salary modeldata/ames:Sale_Price
modeldata/concrete:compressive_strength modeldata/car_prices:Price modeldata/Sacramento:price
modeldata/stackoverflow:Salary modeldata/meats:fat:water,protein modeldata/biomass:HHV:sample
modeldata/deliveries:time_to_delivery modeldata/hotel_rates:avg_price_per_room mosaicData/SaratogaHouses:price
openintro/LAhomes:price openintro/epa2021:comb_mpg:city_mpg,hwy_mpg,comb_co2 openintro/births14:weight
openintro/mlbbat10:run bayesrules/airbnb:price bayesrules/bikes:rides
bayesrules/coffee_ratings:total_cup_points:flavor,aftertaste,aroma,acidity,body,balance,uniformity,clean_cup,sweetness,cupper_points
dplyr/storms:wind:category MASS/cpus:perf:estperf,name MASS/nlschools:lang wooldridge/gpa2:colgpa
wooldridge/wage2:wage:lwage wooldridge/bwght:bwght:lbwght,bwghtlbs wooldridge/attend:final:stndfnl
wooldridge/discrim:pfries:lpfries wooldridge/mlb1:salary:lsalary wooldridge/nbasal:wage:lwage
wooldridge/hprice3:price:lprice,rprice,lrprice wooldridge/crime4:crmrte:lcrmrte,clcrmrte mlmRev/Hsb82:mAch
mlmRev/bdf:langPOST robustbase/radarImage:Band.3 robustbase/ambientNOxCH:ad palmerpenguins/penguins:body_mass_g
datasets/quakes:mag agridat/lasrosas.corn:yield dslabs/gapminder:life_expectancy ggplot2/txhousing:median
fivethirtyeight/bechdel:intgross:domgross,domgross_2013,intgross_2013,title,imdb np/oecdpanel:growth lme4/cake:angle
openintro/evals:score MedDataSets/bdims_tbl_df:wgt plm/RiceFarms:goutput AER/Guns:violent
"""
CLASSES = """
ISLR/OJ:Purchase ISLR/Caravan:Purchase ISLR/Smarket:Direction:Today MASS/Pima.te:type MASS/biopsy:class:ID
MASS/fgl:type MASS/crabs:sp carData/Mroz:lfp carData/Wells:switch carData/Chile:vote carData/BEPS:vote
carData/Arrests:released AER/HMDA:deny AER/CreditCard:card:expenditure,share modeldata/attrition:Attrition
modeldata/mlc_churn:churn modeldata/wa_churn:churn modeldata/lending_club:Class modeldata/credit_data:Status
modeldata/cells:class:case modeldata/hpc_data:class modeldata/leaf_id_flavia:species modeldata/penguins:species
modeldata/pd_speech:class modeldata/hepatic_injury_qsar:class dslabs/brca:y dslabs/olive:region:area DAAG/spam7:yesno
DAAG/nassCDS:dead DAAG/frogs:pres.abs MLDataR/heartdisease:HeartDisease MLDataR/stroke_classification:stroke
MLDataR/diabetes_data:DiabeticClass openintro/email:spam openintro/ncbirths:lowbirthweight:weight
openintro/resume:received_callback Stat2Data/Titanic:Survived wooldridge/loanapp:approve:reject,action
vcdExtra/ICU:died bayesrules/weather_perth:raintomorrow bayesrules/hotel_bookings:is_canceled:reservation_status
mosaicData/HELPrct:homeless
"""
"""Tables, each with its target and columns that tell it, or that only number rows."""


def draw(folder: Path, entry: str, seed: int, rows: int) -> tuple[pd.DataFrame, Array, pd.DataFrame, Array]:
    """Return rows to learn from and others to test on, features and target."""
    name, target, *told = entry.split(":")
    table = pd.read_csv(folder / f"{name}.csv")
    table = table[table[target].notna()]
    aside = {"rownames", "id", target, *",".join(told).split(",")}
    kept = [column for column in table if not aside & {column, column.lower()} and usable(table[column])]
    order = np.random.default_rng(seed).permutation(len(table))
    n = min(rows, int(0.7 * len(table)))
    some, others = table.iloc[order[:n]], table.iloc[order[n : n + 3000]]
    return some[kept], some[target].to_numpy(), others[kept], others[target].to_numpy()


def usable(column: pd.Series) -> bool:
    """Tell whether a column is a feature here."""
    return column.nunique() > 1 and (numeric(column) or column.nunique() <= LEVELS)


def numeric(column: pd.Series) -> bool:
    """Tell whether a column holds numbers."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def by_kernsel(X: pd.DataFrame, y: Array, Z: pd.DataFrame, classes: bool) -> Array:
    """The default, but for the task."""
    task = "classification" if classes else "regression"
    return kernsel.select(X, y, task=task).model.predict(Z)


def by_trees(X: pd.DataFrame, y: Array, Z: pd.DataFrame, classes: bool) -> Array:
    """LightGBM as it comes."""
    import lightgbm

    texts = {column: X[column].astype("category") for column in X if not numeric(X[column])}
    others = {name: pd.Categorical(Z[name], categories=each.cat.categories) for name, each in texts.items()}
    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    return kind(verbose=-1).fit(X.assign(**texts), y).predict(Z.assign(**others))


def by_line(X: pd.DataFrame, y: Array, Z: pd.DataFrame, classes: bool) -> Array:
    """Ridge or logistic regression."""
    numbers = [column for column in X if numeric(X[column])]
    texts = [column for column in X if column not in numbers]
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), texts),
        sparse_threshold=0,
    )
    last = LogisticRegressionCV(Cs=6, max_iter=500) if classes else RidgeCV(np.logspace(-3, 4, 15))
    levels, others = ({name: list(map(str, table[name])) for name in texts} for table in (X, Z))
    return make_pipeline(encoder, last).fit(X.assign(**levels), y).predict(Z.assign(**others))


METHODS: dict[str, Callable[..., Array]] = {"kernsel": by_kernsel, "LightGBM": by_trees, "linear": by_line}


def risk(outputs: Array, y: Array, training: Array, classes: bool) -> float:
    """Return the share misclassified, or the mean squared error in variances of the training target."""
    return float((outputs != y).mean() if classes else ((outputs - y) ** 2).mean() / training.var())


def report(figures: pd.DataFrame, classes: bool) -> None:
    """Print means by table, and what they come to."""
    means = figures.pivot_table(index="table", columns="method", values="risk", sort=False)[list(METHODS)]
    print(means.to_string(float_format=lambda value: f"{value:.4f}"))
    ours = means["kernsel"]
    for rival in list(METHODS)[1:]:
        theirs = means[rival]
        better, worse = int((ours < theirs).sum()), int((ours > theirs).sum())
        middle = (
            f"mean difference {(ours - theirs).mean():.4f}" if classes else f"median {(ours / theirs).median():.3f}"
        )
        print(f"kernsel over {rival}: better on {better}, worse on {worse} of {len(ours)} tables; {middle}")
    print("median seconds:", figures.groupby("method", sort=False)["seconds"].median().round(2).to_dict())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--kind", choices=["regression", "classes"], action="append")
    parser.add_argument("--output", type=Path, help="a line of JSON for each table and method")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for kind in given.kind or ["regression", "classes"]:
        classes, figures = kind == "classes", []
        for entry in (CLASSES if classes else REGRESSIONS).split():
            for seed in range(given.draws):
                X, y, Z, z = draw(given.folder, entry, seed, given.rows)
                for method, predict in METHODS.items():
                    begun = time.perf_counter()
                    outputs = predict(X, y, Z, classes)
                    seconds = time.perf_counter() - begun
                    named = {"table": entry.split(":")[0], "draw": seed, "method": method}
                    figures.append({**named, "risk": risk(outputs, z, y, classes), "seconds": seconds})
                    if given.output:
                        with given.output.open("a") as file:
                            file.write(json.dumps(figures[-1]) + "\n")
        report(pd.DataFrame(figures), classes)


if __name__ == "__main__":
    main()
