"""One release for all pages."""

import pytest
from pages import fitted, public_schema


@pytest.fixture(scope="module")
def release():
    return fitted(public_schema())
