import jax
import numpy as np
import pytest

from npdg.linalg.gram import square


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("columns", [30, 400])
def test_the_square_by_blocks_is_the_square(columns):
    rows = jax.random.normal(jax.random.key(0), (50, columns))
    np.testing.assert_allclose(square(rows), rows.T @ rows, rtol=1e-12, atol=1e-12)
