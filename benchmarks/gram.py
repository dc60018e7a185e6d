"""Seconds per Gram product against what this machine's matrix multiplication allows.

Prints, for the paper's 10-D and 50-D Poisson networks in float32: seconds per product, its floating-point
operations, the achieved rate, and the fraction of the matrix-multiply rate measured in the same run.
"""

import json
import resource
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from npdg.catalogue import find
from npdg.fields.base import split
from npdg.methods.registry import make_method
from npdg.saddle.gram import gram

REPEATS, INNER = 15, 10


def seconds_of(function: Callable[[Array], Array], argument: Array) -> float:
    """One timing."""
    began = time.perf_counter()
    jax.block_until_ready(function(argument))
    return time.perf_counter() - began


def matmul_loop(rows: int, width: int, count: int) -> tuple[Callable[[Array], Array], Array, float]:
    """`count` products (rows × width)·(width × width) in a row, their argument, and their operations."""
    weights = jnp.eye(width)
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, count, lambda _, y: y @ weights, x))
    return loop, jnp.ones((rows, width)), 2.0 * count * rows * width * width


def product_operations(dim: int, width: int, depth: int, interior: int, boundary: int) -> float:
    """Multiplications and additions of one product Jᵀ J v that are matrix products.

    With weights W_k and one point, pushing v through ∇u applies, per hidden layer, W_k and its perturbation to
    values and to the backward sweep: the linearised forward sweep costs 2 products (W·ẋ and Ẇ·x), the linearised
    backward sweep 2 (Wᵀ·δ̇ and Ẇᵀ·δ), and the transpose as many. A boundary value needs the forward half only.
    """
    weights = dim * width + (depth - 2) * width * width + width
    return 2 * weights * (8 * interior + 4 * boundary)


def measure(dim: int) -> dict[str, float | int | str]:
    """One network of the paper."""
    pde = find("poisson").build(dim)
    method = make_method("equation", "npdg", preset="paper")
    [settings] = method.candidates(pde)
    network, points = settings.network, settings.samples
    recipe = method.recipe(pde, settings)
    saddle, fields = recipe.lower({}), recipe.start(jax.random.key(0))
    samples = saddle.sample(jax.random.key(1), recipe.sizes)
    player = next(p for p in saddle.players if p.name == "u")
    vector, _ = split(fields["u"])

    # Many products after one linearisation, as inside a Krylov solve.
    product = gram(player, fields, samples).product
    products = jax.jit(lambda v: jax.lax.fori_loop(0, INNER, lambda _, w: _normalised(product(w)), v))
    operations = INNER * product_operations(dim, network.width, network.depth, points.interior, points.boundary)
    count = round(operations / (2 * points.interior * network.width**2))
    matmuls, matrix, matmul_operations = matmul_loop(points.interior, network.width, count)

    # The clock of a shared machine wanders: time both loops in turn, and compare neighbours.
    ones = jnp.ones_like(vector)
    jax.block_until_ready((products(ones), matmuls(matrix)))
    pairs = [(seconds_of(products, ones), seconds_of(matmuls, matrix)) for _ in range(REPEATS)]
    rates = [(operations / a, matmul_operations / b) for a, b in pairs]
    return {
        "network": f"{dim}-D, {network.width}×{network.depth}, N={points.interior}, {vector.size} parameters",
        "seconds_per_product": statistics.median(a for a, _ in pairs) / INNER,
        "gflop": operations / INNER / 1e9,
        "gflop_per_second": statistics.median(r for r, _ in rates) / 1e9,
        "matmul_gflop_per_second": statistics.median(r for _, r in rates) / 1e9,
        "fraction_of_matmul_rate": statistics.median(r / m for r, m in rates),
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _normalised(v: Array) -> Array:
    return v / jnp.linalg.norm(v)


if __name__ == "__main__":
    for dimension in (10, 50):
        print(json.dumps(measure(dimension), ensure_ascii=False, indent=2), flush=True)
