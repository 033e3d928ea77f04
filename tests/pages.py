"""A release with names that try to break its page, and a reader of pages."""

from html.parser import HTMLParser

import numpy as np
from answers import open_curator
from columns_of_words import ranged

from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.columns.parser import read_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.mst import MST
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.report.about import About
from sdv_privpgd.report.release import release_report
from sdv_privpgd.synthesize.engine import Particles

EVIL = "<script>alert(1)</script>"
BREAKOUT = "</script><img src=x onerror=alert(2)>"
COLUMNS = {
    EVIL: {"sdtype": "categorical", "range_values": ["a&b", BREAKOUT, "<b>c</b>", 4]},
    "age": {"sdtype": "numerical", "range_min": 18, "range_max": 67, "decimal_places": 0},
    "balance": {"sdtype": "numerical", "range_min": -1, "range_max": 1, "decimal_places": 2},
    "weight": {"sdtype": "numerical", "range_min": 0.5, "range_max": 8.5, "num_bins": 4},
    "seen": ranged("datetime", "2020-01-01", "2020-12-31", datetime_format="%Y-%m-%d"),
    "smoker": {"sdtype": "boolean", "range_is_nullable": False},
}


class Reader(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.handlers: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def public_schema(columns=COLUMNS):
    return Schema.from_sdv(columns, num_bins=8)


def fitted(schema, cliques=None, adjacency=Adjacency.REPLACE_ONE, num_rows=4_000):
    """A release of measurements bought from a curator, and a model of other rows."""
    domain = schema.domain()
    rng = np.random.default_rng(0)
    records, particles = (
        rng.integers(0, domain.sizes, (rows, len(domain))) for rows in (num_rows, 500)
    )
    curator = open_curator(Dataset(domain, records), adjacency=adjacency, seed=None)
    count = curator.measure([CountQuery()], curator.ledger.remaining / 100, what="number of rows")
    queries = [MarginalQuery(clique) for clique in cliques or domain.cliques(2)]
    tables = curator.measure(queries, curator.ledger.remaining, what="tables")
    return Release(
        domain=domain,
        ledger=curator.ledger,
        measurements=(*count, *tables),
        model=Particles(domain=domain, codes=particles),
    )


ABOUT = About(
    table="people",
    date="2026-01-31",
    method=MST(),
    columns=COLUMNS,
    keys=[],
    declared={**read_table(COLUMNS), "age": NumberFacts(low=18, high=70, decimal_places=0)},
    discovered={"balance": NumberFacts(low=-1.0, high=1.0, decimal_places=2)},
    settings={"num_bins": 8},
)


def page_of(release, schema=None):
    return Reader(release_report(release, release.ledger, schema or public_schema(), ABOUT).html())
