"""The optimal map from one cloud of points to another, from the points alone."""

import numpy as np

import npdg

rng = np.random.default_rng(0)
source = rng.normal(size=(4000, 2))
target = np.concatenate([rng.normal(size=(2000, 2)) * 0.4 + [2, 0], rng.normal(size=(2000, 2)) * 0.4 - [2, 0]])

solution = npdg.transport(source, target, steps=40, width=24, n_interior=4000, minres_max=30)
score = solution.score()
print(f"W₂ = {solution.distance():.3f}")
print(f"sliced W₂ to the target {score['sliced_w2']:.3f}, floor {score['sliced_w2_floor']:.3f}")

moved = solution.map(source)
left = np.mean(moved[:, 0] < 0)  # half of the mass goes to either side, and points do not cross
assert abs(left - 0.5) < 0.03
# Two halves of the target's own samples are this far from each other: nothing below it can be seen.
assert score["sliced_w2"] is not None
assert score["sliced_w2_floor"] is not None
assert score["sliced_w2"] < 2 * score["sliced_w2_floor"]
assert np.corrcoef(source[:, 0], moved[:, 0])[0, 1] > 0.8
