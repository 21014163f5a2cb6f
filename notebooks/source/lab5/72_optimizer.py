# %% [markdown]
# ## b0.2 One step of AdamW ({points b0_2})
#
# Most language models are trained with AdamW. For each parameter θ it keeps two running means: m of the gradient g, and
# v of the squared gradient. Step number t (t = 1, 2, ...) is
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2,$$
#
# $$\alpha_t = \alpha\, \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t}, \qquad
# \theta \leftarrow \theta - \alpha_t \frac{m}{\sqrt{v} + \varepsilon}, \qquad
# \theta \leftarrow \theta - \alpha\, \lambda\, \theta.$$
#
# $\alpha$ is the learning rate `lr` and $\lambda$ is the `decay`. Follow three details of this formula exactly:
#
# - ε is added to the root, not under it. (The slide of the lecture had it under the root.)
# - The weight decay uses $\alpha$, not the corrected $\alpha_t$.
# - The weight decay comes *after* the step. (PyTorch decays first, which gives slightly different numbers.)
#
# Write one function:
#
# - `adamw_step(theta, g, m, v, t, lr, beta1, beta2, eps, decay)`: returns the new `(theta, m, v)`. The first four
#   arguments are floats, or NumPy arrays of the same shape. Do not change the arrays that you are given.


# %% nbgrader={"grade_id": "b0_2", "solution": true}
def adamw_step(theta, g, m, v, t, lr, beta1, beta2, eps, decay):
    """One step of AdamW: the new (theta, m, v)."""
    ### BEGIN SOLUTION
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    corrected = lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
    theta = theta - corrected * m / (v**0.5 + eps)
    return theta - lr * decay * theta, m, v
    ### END SOLUTION


# %% nbgrader={"grade_id": "b0_2_test", "grade": true, "points": 3}
def check_adamw(theta, gradients, expected, tolerance=1e-7, **settings):
    m = v = np.zeros_like(theta) if isinstance(theta, np.ndarray) else 0.0
    for t, g in enumerate(gradients, 1):
        stepped = adamw_step(theta, g, m, v, t=t, **settings)
        said = f"adamw_step must return a tuple (theta, m, v), got {stepped!r}"
        assert isinstance(stepped, (tuple, list)) and len(stepped) == 3, said
        theta, m, v = stepped
    name = f"theta after {len(gradients)} steps with {settings}"
    assert_close(theta, expected, rtol=0, atol=tolerance, name=name)


usual = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
check_adamw(1.0, [0.5], 0.9000000632, lr=0.1, decay=0.0, **usual)
check_adamw(1.0, [0.5, -0.25], 0.85572271, lr=0.1, decay=0.1, **usual)
check_adamw(2.0, [0.01, 0.02], 1.8370885443, lr=0.1, decay=0.2, beta1=0.5, beta2=0.75, eps=0.01)
### BEGIN HIDDEN TESTS
check_adamw(1.0, [0.1, -0.2, 0.3], 0.98725774, tolerance=1e-8, lr=0.01, decay=0.1, **usual)


def adamw_float64(theta, gradients, lr, beta1, beta2, eps, decay):
    m = v = 0
    for t, g in enumerate(gradients, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        theta = theta - lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t) * m / (np.sqrt(v) + eps)
        theta = theta - lr * decay * theta
    return theta


shape, steps = (measure.draw(2, 5), measure.draw(2, 5)), measure.draw(4, 8)
for settings in (
    {"lr": 0.02, "decay": measure.draw(10, 50) / 100, "beta1": 0.8, "beta2": 0.9, "eps": 0.001},
    {"lr": measure.draw(10, 50) / 100, "decay": 0.01, "beta1": 0.9, "beta2": 0.95, "eps": 0.1},
):
    theta, gradients = measure.rng().standard_normal(shape), list(measure.rng().standard_normal((steps, *shape)))
    check_adamw(theta, gradients, adamw_float64(theta, gradients, **settings), tolerance=1e-9, **settings)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b0_2_arrays_test", "grade": true, "points": 1}
given = [np.array([1.0, -2.0]), np.array([0.5, 0.5]), np.array([0.1, -0.1]), np.array([0.04, 0.09])]
seen = measure.call(adamw_step, *given, 3, 0.1, 0.9, 0.999, 1e-8, 0.1)
assert seen.changed == (), "adamw_step changed an array that it was given: compute new arrays instead"
said = f"adamw_step must return a tuple (theta, m, v), got {seen.value!r}"
assert isinstance(seen.value, (tuple, list)) and len(seen.value) == 3, said
expected = {"theta": [0.97603727, -1.97733583], "m": [0.14, -0.04], "v": [0.04021, 0.09016]}
for (name, right), got in zip(expected.items(), seen.value, strict=True):
    assert_close(got, right, rtol=0, atol=1e-7, name=f"{name} of an array with two parameters")
### BEGIN HIDDEN TESTS
given = measure.rng().uniform(0.1, 2, (4, measure.draw(3, 9)))
again = measure.call(adamw_step, *given, 5, 0.1, 0.9, 0.999, 1e-8, 0.1)
assert again.changed == (), "adamw_step changed an array that it was given: compute new arrays instead"
theta, g, m, v = given
for t in (1, 5, measure.draw(20, 90), measure.draw(1000, 5000)):
    stepped = adamw_step(theta, g, m, v, t, 0.1, 0.9, 0.999, 1e-8, 0.1)
    means = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    rate = 0.1 * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t)
    expected = 0.99 * (theta - rate * means[0] / (np.sqrt(means[1]) + 1e-8))
    for name, got, right in zip(("theta", "m", "v"), stepped, (expected, *means), strict=True):
        assert_close(got, right, rtol=0, atol=1e-9, name=f"{name} after step {t}")
### END HIDDEN TESTS

# %% [markdown]
# The two running means take memory: two more numbers for each parameter. You count these bytes in b1.3.
#
# ## b0.3 The learning rate ({points b0_3})
#
# The learning rate of a large model is not constant. It rises linearly from 0 at step 0 to `high` at step `warmup`.
# Then it falls along half a period of a cosine to `low` at step `end`, and stays there.
#
# - `lr_at(t, high, low, warmup, end)`: the learning rate at step t = 0, 1, 2, ...


# %% nbgrader={"grade_id": "b0_3", "solution": true}
def lr_at(t, high, low, warmup, end):
    """Learning rate at step t: linear from 0 to high, cosine to low, then low."""
    ### BEGIN SOLUTION
    if t < warmup:
        return high * t / warmup
    done = min((t - warmup) / (end - warmup), 1)
    return low + (high - low) * (1 + math.cos(math.pi * done)) / 2
    ### END SOLUTION


# %% nbgrader={"grade_id": "b0_3_test", "grade": true, "points": 2}
lr_hint = "linear from 0 to high at step warmup, half a period of a cosine to low at step end, then low"
cases = {0: 0.0, 2: 1.0, 4: 2.0, 8: 1.25, 12: 0.5, 13: 0.5, 1000: 0.5}
assert_values(lr_at, {(t, 2.0, 0.5, 4, 12): lr for t, lr in cases.items()}, lr_hint)
assert_values(lr_at, {(6, 2.0, 0.5, 4, 12): 1.7803300859}, lr_hint)
### BEGIN HIDDEN TESTS
cases = {0: 0.0, 5: 0.5, 10: 1.0, 35: 0.8681980515, 60: 0.55, 110: 0.1, 200: 0.1}
assert_values(lr_at, {(t, 1.0, 0.1, 10, 110): lr for t, lr in cases.items()}, lr_hint, relative=1e-6)
warmup, end = measure.draw(50, 99), measure.draw(500, 900)
rising, falling, high, low = measure.draw(1, warmup - 1), measure.draw(warmup + 1, end - 1), 6e-4, 6e-5
cosine = math.cos(math.pi * (falling - warmup) / (end - warmup))
assert_values(lr_at, {(rising, high, low, warmup, end): high * rising / warmup}, lr_hint, relative=1e-6)
assert_values(
    lr_at, {(falling, high, low, warmup, end): (high + low + (high - low) * cosine) / 2}, lr_hint, relative=1e-6
)
assert_values(lr_at, {(end, high, low, warmup, end): low, (2 * end, high, low, warmup, end): low}, lr_hint)
### END HIDDEN TESTS

# %%
rates = {"learning rate": {t: lr_at(t, 6e-4, 6e-5, 100, 1000) for t in range(1, 1400, 7)}}
rl.plots.plot_lines(
    rates, "", "learning rate", xlabel="step", title="Both axes logarithmic: the rise is a straight line"
)
