"""Sobol points with a random digital shift: means over them are far less noisy than over independent points."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

BITS = 32


def shifted_sobol(key: Array, n: int, dim: int) -> Array:
    """n points of the unit cube: Sobol's, with a random digital shift.

    The shift flips bits of each coordinate, which leaves a digital net a digital net. A shift modulo 1 would not, and
    means would be several times as noisy.
    """
    from scipy.stats import qmc  # slow to import

    base = qmc.Sobol(dim, scramble=False, bits=BITS).random_base2(int(np.ceil(np.log2(n))))[:n]
    flips = jax.random.bits(key, (dim,), jnp.uint32)
    flipped = jax.vmap(lambda row: row ^ flips)(jnp.asarray((base * 2.0**BITS).astype(np.uint32)))
    unit = flipped.astype(float) * 2.0**-BITS
    tiny = jnp.finfo(unit.dtype).eps / 2
    return jnp.clip(unit + tiny, tiny, 1 - tiny)
