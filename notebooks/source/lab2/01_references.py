# %% tags=["setup"]
### BEGIN HIDDEN TESTS
import ml_dtypes

from rooflab.grading.measure.one_call import without_collector


def _model(config, V, L):
    sizes = {name: config[name] for name in ("d_model", "d_ff", "num_layers", "num_heads")}
    return rl.nn.TransformerLM(rl.nn.TransformerConfig(**sizes, vocab_size=V, context_length=L), device="meta")


def _ids(B, L):
    return rl.empty(B, L, dtype="int64", device="meta")


@without_collector()
def timeline_of(model, input_ids, mode, warmup_steps, amp_context=None, optimizer=None):
    """The memory timeline of a step, its phases in ranges."""
    for _ in range(warmup_steps):
        _step(model, input_ids, mode, amp_context, optimizer)
        model.zero_grad()
    with rl.memory.record(model.device) as timeline:
        output = _step(model, input_ids, mode, amp_context, optimizer)
    del output
    return timeline


def _step(model, input_ids, mode, amp_context, optimizer):
    with rl.range("forward"), amp_context or contextlib.nullcontext():
        with rl.no_grad() if mode == "inference" else contextlib.nullcontext():
            output = model(input_ids)
        output = output.mean() if mode == "step" else output
    if mode == "step":
        with rl.range("backward"):
            output.backward()
        if optimizer is not None:
            with rl.range("optimizer"):
                optimizer.step()
    return output


@without_collector()
def counted_peak(config, V, B, L, mode, kept_gradients=False, low=None):
    """The most that a step holds at any time."""
    model = _model(config, V, L)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3) if mode == "step" else None
    amp = rl.autocast(low) if low else None
    timeline = timeline_of(model, _ids(B, L), mode, 1, amp, optimizer)
    if kept_gradients:
        timeline = timeline_of(model, _ids(B, L), mode, 0, amp, optimizer)
    return int(timeline.resident_bytes + timeline.peak_bytes)


def assert_peak(function, D, inner, n, H, V, B, L, mode, **options):
    """`function` says within one per cent what is counted here, with or without what this process already holds."""
    config = {"d_model": D, "d_ff": inner, "num_layers": n, "num_heads": H}
    with without_collector():
        others = rl.memory.allocated("meta")
        got, right = function(config, V, B, L, mode, **options), counted_peak(config, V, B, L, mode, **options)
    case = f"peak_bytes, {mode}, D = {D}, n = {n}, L = {L}, {options or 'fp32'}"
    assert is_count(got), f"{case}: peak_bytes has to return an int, got {got!r}"
    right -= 0 if is_near(got, right, 0.01) else others
    assert is_near(got, right, 0.01), f"{case}: expected {right / 2**20:.1f} MiB, got {got / 2**20:.1f} MiB"


def counted_blocks(config, V, B, L):
    """(bytes, op, range) of all blocks of a forward pass, the largest first."""
    timeline = timeline_of(_model(config, V, L), _ids(B, L), "forward", 0)
    taken = [one for one in timeline.allocations if one.start_us is not None and not one.is_scratch]
    return sorted(((int(one.bytes), one.op, one.range) for one in taken), key=lambda one: -one[0])


@without_collector()
def counted_loop_peak(config, V, B, L, freed):
    """The most that is held in the second round of a loop of forward passes, whose last output is freed or not."""
    model, ids = _model(config, V, L), _ids(B, L)
    output = model(ids)
    if freed:
        del output
    with rl.memory.record("meta") as timeline:
        output = model(ids)
    del output
    return int(timeline.resident_bytes + timeline.peak_bytes)


def added_up(value, steps, total_dtype, term_dtype, start=0.0):
    """`value` in one dtype, added `steps` times to a sum in another, which is rounded each time."""
    total_type, term_type = (np.dtype(getattr(ml_dtypes, name, name)) for name in (total_dtype, term_dtype))
    term = np.array(value).astype(term_type).astype(total_type)
    total = np.array(start).astype(total_type)
    for _ in range(steps):
        total = (total + term).astype(total_type)
    return float(total)


def read_dtypes(model, x, targets, low):
    """The dtype of each tensor that model(x) returns, of its parameters, the loss and the gradients."""
    with rl.autocast(low):
        tensors = model(x)
        loss = rl.cross_entropy(tensors["logits"], targets)
    loss.backward()
    (dtype,) = {str(one.dtype) for one in model.parameters()}
    (gradient,) = {str(one.grad.dtype) for one in model.parameters() if one.grad is not None}
    named = {name: str(one.dtype) for name, one in tensors.items()}
    return named | {"parameters": dtype, "loss": str(loss.dtype), "gradients": gradient}


def toy_float64(x, first, second):
    """What a ToyModel with these weights returns."""
    x, first, second = (array.astype(np.float64) for array in (x, first, second))
    fc1 = x @ first.T
    relu = np.maximum(fc1, 0)
    ln = (relu - relu.mean(-1, keepdims=True)) / np.sqrt(relu.var(-1, keepdims=True) + 1e-5)
    return {"input": x, "fc1": fc1, "relu": relu, "ln": ln, "logits": ln @ second.T}


def adamw_float64(p, g, m, v, t, lr, betas, eps, weight_decay):
    """p, its weight decay before the update or after it, m and v after step t of AdamW."""
    p, g, m, v = (np.asarray(array, np.float64) for array in (p, g, m, v))
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
    update = lr * m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    kept = 1 - lr * weight_decay
    return (p * kept - update, (p - update) * kept), m, v


def plain_attention(q, k, v, mask):
    """Attention in nine launches."""
    scores = (q @ k.mT) * q.shape[-1] ** -0.5 + mask
    exponentials = rl.exp(scores - scores.amax(-1, keepdim=True))
    return (exponentials / exponentials.sum(-1, keepdim=True)) @ v


def counted_passes(function, lm, ids):
    """Launches, products and saved bytes of a forward pass and its backward pass, after a first call."""
    function(ids, *lm.tensors)
    with rl.count() as forward:
        logits = function(ids, *lm.tensors)
    saved = sum(one.bytes for one in rl.autograd.saved_tensors(logits))
    with rl.count() as backward:
        logits.mean().backward()
    for weight in lm.weights:
        weight.grad = None
    products = sum(int(part.by_op["matmul"].launches) for part in (forward, backward))
    row = {"forward": int(forward.launches), "backward": int(backward.launches)}
    return row | {"products": products, "saved_bytes": int(saved)}


### END HIDDEN TESTS
