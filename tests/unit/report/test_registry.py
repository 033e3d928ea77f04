"""A registry entry has the registry's fields: those that a fit knows, and blanks that are named."""

import json
import math

import pytest
from pages import ABOUT, COLUMNS, fitted, public_schema

from sdv_privpgd.privacy.ledger import TRAINED
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.registry import methods_of, registry_entry

FIELDS = {  # deployments-registry-data, July 2026
    "": "url_slug status tier",
    "deployment.basic.": (
        "name data_curators description intended_use data_product_type data_product_region "
        "publication_date data_product_sector"
    ),
    "deployment.dp_variant.": "variant_name data_domain unprotected_quantities",
    "deployment.privacy_loss.": (
        "privacy_unit privacy_unit_details privacy_parameters.epsilon privacy_parameters.delta "
        "privacy_parameters.rho privacy_parameters_details"
    ),
    "deployment.deployment_model.": (
        "model_name model_name_details actors release_type release_type_details data_source_type "
        "data_source_type_details access_type access_type_details"
    ),
    "deployment.accounting.": "post_processing composition",
    "deployment.implementation.": (
        "preprocessing_and_hyperparameter_tuning mechanisms justification"
    ),
    "deployment.administrative.": "sources notes registry_authors",
}
PATHS = {f"{above}{name}" for above, names in FIELDS.items() for name in names.split()}
SAID = {"name": "Bank, 2026!", "curators": "Bank", "region": "Alps", "use": "tests", "authors": "A"}
TO_SAY = {"description", "data_product_sector", "actors", "justification", "notes"} | {
    *("data_source_type", "data_source_type_details"),
    *("preprocessing_and_hyperparameter_tuning", "mechanisms"),  # in part
}


@pytest.fixture(scope="module", params=Adjacency)
def release(request):
    return fitted(public_schema(), adjacency=request.param)


def leaves(facts, above=""):
    for key, fact in facts.items():
        if isinstance(fact, dict):
            yield from leaves(fact, f"{above}{key}.")
        else:
            yield f"{above}{key}", fact


def test_the_fields_are_the_registrys_and_each_is_filled_in_or_named(release):
    entry = registry_entry(release, release.ledger, ABOUT, SAID)
    found = dict(leaves(entry.to_dict()))
    assert found.keys() == PATHS
    assert {path.rpartition(".")[2] for path in entry.blanks} == TO_SAY
    empty = {path for path, fact in found.items() if fact in ("", [""])}
    assert empty < set(entry.blanks)
    assert len(PATHS - empty) - len(SAID) >= 20
    assert all(f"- {path}" in str(entry) for path in entry.blanks)
    assert found["url_slug"] == "bank_2026"
    assert found["deployment.administrative.registry_authors"] == ["A"]
    unsaid = registry_entry(release, release.ledger, ABOUT, dict.fromkeys(SAID, ""))
    assert set(unsaid.blanks) - set(entry.blanks) == {
        "url_slug",
        "deployment.administrative.registry_authors",
        *(
            f"deployment.basic.{name}"
            for name in ("name", "data_curators", "intended_use", "data_product_region")
        ),
    }


def test_what_the_fit_knows_is_said_exactly(release):
    ledger = release.ledger
    facts = registry_entry(release, ledger, ABOUT, SAID).to_dict()["deployment"]
    assert facts["privacy_loss"]["privacy_parameters"] == {
        "epsilon": ledger.spent(),
        "delta": ledger.delta,
        "rho": float(ledger.mu_squared / 2),
    }
    details = facts["privacy_loss"]["privacy_parameters_details"]
    assert f"{math.sqrt(ledger.mu_squared):.6g}-Gaussian" in details
    is_public = ledger.adjacency is Adjacency.REPLACE_ONE
    assert ("number of rows" in facts["dp_variant"]["unprotected_quantities"]) is is_public
    assert all(repr(name) in facts["dp_variant"]["data_domain"] for name in COLUMNS)
    assert all(charge.what in facts["accounting"]["composition"] for charge in ledger.charges)
    assert "McKenna" in facts["administrative"]["sources"]
    assert TRAINED not in facts["implementation"]["mechanisms"]
    assert facts["deployment_model"]["release_type"] == "One release"
    both = registry_entry(release, ledger.followed_by(ledger), ABOUT, SAID).to_dict()
    assert both["deployment"]["deployment_model"]["release_type"] == "Many releases"
    both = both["deployment"]["privacy_loss"]["privacy_parameters"]
    assert both["epsilon"] > ledger.spent()
    for all_of_it in (ledger, ledger.followed_by(ledger)):
        said = str(methods_of(ABOUT, release, all_of_it))
        alone = f"This release alone has ε = {ledger.spent():.4g}."
        assert (alone in said) is (all_of_it is not ledger)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_file_holds_the_entry(release, tmp_path, ending):
    load = json.loads if ending == "json" else pytest.importorskip("yaml").safe_load
    entry = registry_entry(release, release.ledger, ABOUT, SAID)
    path = entry.save(tmp_path / f"entry.{ending}")
    assert load(path.read_text(encoding="utf-8")) == entry.to_dict()
    with pytest.raises(ValueError, match=r"ends in \.json"):
        entry.save(tmp_path / "entry.txt")
