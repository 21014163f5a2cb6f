"""What to write instead of PyTorch names that rooflab does not have: the errors for such names say it.

One rule for every module of rooflab that PyTorch users look into: its `__getattr__` raises `no_attribute(...)`, which
looks into the module's table here. So `rl.norm`, `from rooflab import norm` and `x.norm` all get an answer.
"""

from __future__ import annotations

import dis
import importlib
import sys

# x and y are tensors of shape (2, 3), mask is one of bool, index one of integers, array a NumPy array, w a parameter
# with a gradient, model a module. Each entry is an expression or statement, and a test runs them all.
_BOTH = {  # functions and methods
    "acos": "np.arccos(x)",
    "argwhere": "x.nonzero()",
    "aminmax": "(x.amin(), x.amax())",
    "asin": "np.arcsin(x)",
    "atan": "np.arctan(x)",
    "atan2": "np.arctan2(x, y)",
    "baddbmm": "y[None] + x[None] @ y.mT[None] @ y[None]",
    "clamp_max": "x.clamp(max=1)",
    "clamp_min": "x.clamp(min=0)",
    "copysign": "np.copysign(x, y)",
    "corrcoef": "rl.tensor(np.corrcoef(x.numpy()))",
    "cosh": "(x.exp() + (-x).exp()) / 2",
    "cov": "rl.tensor(np.cov(x.numpy()))",
    "cummax": "rl.tensor(np.maximum.accumulate(x.numpy(), 0))",
    "cummin": "rl.tensor(np.minimum.accumulate(x.numpy(), 0))",
    "cumprod": "rl.tensor(x.numpy().cumprod(0))",
    "det": "rl.tensor(np.linalg.det((x @ y.mT).numpy()))",
    "diagonal": "x.diag()",
    "diff": "x[:, 1:] - x[:, :-1]",
    "dist": "((x - y) ** 2).sum().sqrt()",
    "erf": "scipy.special.erf(x)",
    "expm1": "np.expm1(x)",
    "fliplr": "x[:, ::-1]",
    "flipud": "x[::-1]",
    "fmax": "np.fmax(x, y)",
    "fmin": "np.fmin(x, y)",
    "fmod": "np.fmod(x, y)",
    "frac": "x - x.trunc()",
    "greater": "x > y",
    "heaviside": "np.heaviside(x, y)",
    "histc": "rl.tensor(np.histogram(x.numpy(), 10)[0])",
    "hypot": "(x * x + y * y).sqrt()",
    "index_copy": "z = x.clone(); z[index[0][:2]] = y",
    "index_fill": "z = x.clone(); z[index[0][:2]] = 5.0",
    "inner": "x @ y.mT",
    "inverse": "rl.tensor(np.linalg.inv((x @ y.mT).numpy()))",
    "isin": "rl.tensor(np.isin(x.numpy(), y.numpy()))",
    "kron": "rl.tensor(np.kron(x.numpy(), y.numpy()))",
    "kthvalue": "x.sort().values[:, 1]",
    "less": "x < y",
    "log1p": "np.log1p(x)",
    "logaddexp": "rl.stack([x, y]).logsumexp(0)",
    "logit": "(x / (1 - x)).log()",
    "mode": "(lambda values, counts: values[counts.argmax()])(*rl.unique(index, return_counts=True))",
    "moveaxis": "x.movedim(0, 1)",
    "msort": "x.sort(0).values",
    "multiply": "x * y",
    "nanmean": "x[~x.isnan()].mean()",
    "nanmedian": "x[~x.isnan()].median()",
    "nansum": "x.nan_to_num().sum()",
    "norm": "(x * x).sum().sqrt()",
    "not_equal": "x != y",
    "positive": "+x",
    "quantile": "rl.tensor(np.quantile(x.numpy(), 0.5))",
    "rot90": "x.T[::-1]",
    "rsub": "y - x",
    "searchsorted": "rl.tensor(np.searchsorted(x[0].sort().values.numpy(), y.numpy()))",
    "sgn": "x.sign()",
    "sinh": "(x.exp() - (-x).exp()) / 2",
    "std_mean": "(x.std(), x.mean())",
    "subtract": "x - y",
    "svd": "np.linalg.svd(x.numpy())",
    "swapdims": "x.transpose(0, 1)",
    "take": "x.flatten()[index]",
    "take_along_dim": "x.gather(0, index)",
    "tan": "x.sin() / x.cos()",
    "tensor_split": "x.split([1, 2], dim=1)",
    "true_divide": "x / y",
    "unflatten": "x.reshape(2, 3, 1)",
    "unique_consecutive": "x.flatten()[[True, *(x.flatten()[1:] != x.flatten()[:-1]).tolist()]]",
    "var_mean": "(x.var(), x.mean())",
    "vdot": "x.flatten() @ y.flatten()",
    "xlogy": "rl.where(x == 0, x, x * y.log())",
}
TENSOR = _BOTH | {
    "H": "x.mT",
    "abs_": "x.copy_(x.abs())",
    "absolute": "x.abs()",
    "apply_": "x.copy_(rl.tensor(np.vectorize(math.exp)(x.numpy()), dtype=x.dtype))",
    "astype": 'x.to("float16")',
    "bernoulli_": "x.copy_(rl.bernoulli(rl.full((2, 3), 0.5)))",
    "ceil_": "x.copy_(x.ceil())",
    "clamp_": "x.copy_(x.clamp(0, 1))",
    "clip_": "x.copy_(x.clamp(0, 1))",
    "cos_": "x.copy_(x.cos())",
    "exp_": "x.copy_(x.exp())",
    "exponential_": "x.copy_(-(1 - rl.rand_like(x)).log())",
    "fill_diagonal_": 'x[rl.eye(2, 3, dtype="bool")] = 0',
    "floor_": "x.copy_(x.floor())",
    "get_device": "x.device.index",
    "index_add_": "x.copy_(x.index_add(0, index[0][:2], y))",
    "index_copy_": "x[index[0][:2]] = y",
    "index_fill_": "x[index[0][:2]] = 5.0",
    "index_put_": "x[index] = 1",
    "is_complex": "False",
    "is_sparse": "False",
    "log_": "x.copy_(x.log())",
    "logical_not_": "x.copy_(x.logical_not().float())",
    "masked_fill_": "x[mask] = 0",
    "ndimension": "x.ndim",
    "neg_": "x.copy_(-x)",
    "negative": "-x",
    "nelement": "x.numel()",
    "normal_": "x.copy_(rl.randn_like(x))",
    "pow_": "x.copy_(x**2)",
    "random_": "x.copy_(rl.randint(0, 10, x.shape).float())",
    "reciprocal_": "x.copy_(1 / x)",
    "relu_": "x.copy_(x.relu())",
    "remainder_": "x.copy_(x % 2)",
    "resize_": "x = x.reshape(3, 2)",
    "round_": "x.copy_(x.round())",
    "rsqrt_": "x.copy_(x.rsqrt())",
    "scatter_": "x.copy_(x.scatter(0, index, 5.0))",
    "scatter_add_": "x.copy_(x.scatter_add(0, index, y))",
    "sigmoid_": "x.copy_(x.sigmoid())",
    "sin_": "x.copy_(x.sin())",
    "sqrt_": "x.copy_(x.sqrt())",
    "square_": "x.copy_(x * x)",
    "squeeze_": "x = x.squeeze()",
    "t_": "x = x.T",
    "tanh_": "x.copy_(x.tanh())",
    "transpose_": "x = x.transpose(0, 1)",
    "tril_": "x.copy_(x.tril())",
    "triu_": "x.copy_(x.triu())",
    "type": "x.dtype",
    "unfold": "rl.stack([x[:, i : i + 2] for i in range(2)], 1)",
    "uniform_": "x.copy_(rl.rand_like(x))",
    "unsqueeze_": "x = x.unsqueeze(0)",
}
FUNCTIONS = _BOTH | {
    "BoolTensor": 'rl.tensor(array, dtype="bool")',
    "DoubleTensor": 'rl.tensor(array, dtype="float64")',
    "FloatTensor": "rl.tensor(array)",
    "HalfTensor": 'rl.tensor(array, dtype="float16")',
    "IntTensor": 'rl.tensor(array, dtype="int32")',
    "LongTensor": 'rl.tensor(array, dtype="int64")',
    "Size": "tuple(x.shape)",
    "addcdiv": "x + 0.5 * (x / y)",
    "addcmul": "x + 0.5 * (x * y)",
    "amp": 'rl.autocast("cuda", dtype="bfloat16")',
    "atleast_1d": "x[0, 0].reshape(1)",
    "atleast_2d": "x[0][None]",
    "asarray": "rl.as_tensor(array)",
    "block_diag": "rl.tensor(scipy.linalg.block_diag(x.numpy(), y.numpy()))",
    "broadcast_tensors": "[x, y.expand(2, 3)]",
    "cartesian_prod": "rl.stack([v.flatten() for v in rl.meshgrid(x[0], y[0])], 1)",
    "cdist": "((x[:, None] - y[None]) ** 2).sum(-1).sqrt()",
    "column_stack": "rl.cat([x, y], dim=1)",
    "cosine_similarity": "rl.nn.functional.cosine_similarity(x, y)",
    "cross": "rl.tensor(np.cross(x.numpy(), y.numpy()))",
    "cummax": _BOTH["cummax"],
    "dropout": "rl.nn.functional.dropout(x)",
    "dstack": "rl.stack([x, y], -1)",
    "e": "math.e",
    "fft": "np.fft.fft(x.numpy())",
    "fill": "rl.full((2, 3), 1.0)",
    "frombuffer": "rl.tensor(np.frombuffer(array.tobytes(), np.float32))",
    "functional": "rl.nn.functional",
    "get_default_dtype": "rl.float32",
    "get_device": "x.device",
    "get_num_threads": "rl.num_threads()",
    "hann_window": "rl.tensor(np.hanning(9)[:-1])",
    "inference_mode": "rl.no_grad()",
    "initial_seed": "rl.get_rng_state()[0]",
    "is_complex": "False",
    "is_floating_point": "x.is_floating_point()",
    "is_nonzero": "bool(x[0, 0])",
    "jit": "rl.compile(rl.relu)",
    "linalg": "np.linalg.norm(x.numpy())",
    "logspace": "rl.tensor(np.logspace(0, 1, 5))",
    "normal": "5.0 + 2.0 * rl.randn(2, 3)",
    "row_stack": "rl.cat([x, y])",
    "scalar_tensor": "rl.tensor(1.5)",
    "seed": "rl.manual_seed(0)",
    "set_printoptions": "np.set_printoptions(precision=4)",
    "special": "scipy.special.erf(x)",
    "take_along_dim": _BOTH["take_along_dim"],
    "tensordot": "(x * y).sum()",
    "tril_indices": "rl.ones(3, 3).tril().nonzero().T",
    "triu_indices": "rl.ones(3, 3).triu().nonzero().T",
    "vander": "rl.tensor(np.vander(x[0].numpy()))",
}
NN = {
    "AdaptiveAvgPool1d": "x.mean(-1, keepdim=True)",
    "AvgPool1d": "x.reshape(2, 1, 3).mean(-1)",
    "BCELoss": "-(mask.float() * x.sigmoid().log() + (1 - mask.float()) * (1 - x.sigmoid()).log()).mean()",
    "BCEWithLogitsLoss": "(rl.nn.functional.softplus(x) - x * mask.float()).mean()",
    "CosineSimilarity": "rl.nn.functional.cosine_similarity(x, y)",
    "ELU": "rl.nn.functional.elu(x)",
    "GLU": "rl.nn.functional.glu(x[:, :2])",
    "Hardtanh": "x.clamp(-1, 1)",
    "HuberLoss": "rl.where((x - y).abs() < 1, (x - y) ** 2 / 2, (x - y).abs() - 0.5).mean()",
    "KLDivLoss": "(y.softmax() * (y.log_softmax() - x.log_softmax())).mean()",
    "L1Loss": "rl.nn.functional.l1_loss(x, y)",
    "LeakyReLU": "rl.nn.functional.leaky_relu(x)",
    "LogSigmoid": "rl.nn.functional.logsigmoid(x)",
    "MultiheadAttention": "rl.attention(x[None], x[None], x[None])",
    "NLLLoss": "rl.nn.functional.nll_loss(x.log_softmax(), index[0][:2])",
    "ParameterDict": 'rl.nn.ModuleDict({"a": rl.nn.Linear(3, 2)})',
    "ParameterList": "rl.nn.ModuleList([rl.nn.Linear(3, 2)])",
    "ReLU6": "x.clamp(0, 6)",
    "SmoothL1Loss": "rl.where((x - y).abs() < 1, (x - y) ** 2 / 2, (x - y).abs() - 0.5).mean()",
    "Softplus": "rl.nn.functional.softplus(x)",
    "Unflatten": "x.reshape(2, 3, 1)",
    "DataParallel": "model",
    "init": "rl.nn.Linear(3, 2, init=lambda *shape, **where: 0.01 * rl.randn(*shape, **where))",
}
FUNCTIONAL = {
    "avg_pool1d": "x.reshape(2, 1, 3).mean(-1)",
    "binary_cross_entropy": NN["BCELoss"],
    "binary_cross_entropy_with_logits": NN["BCEWithLogitsLoss"],
    "hardtanh": "x.clamp(-1, 1)",
    "huber_loss": NN["HuberLoss"],
    "kl_div": NN["KLDivLoss"],
    "pairwise_distance": "((x - y + 1e-6) ** 2).sum(-1).sqrt()",
    "relu6": "x.clamp(0, 6)",
    "relu_": "x.copy_(x.relu())",
    "silu_": "x.copy_(rl.silu(x))",
    "smooth_l1_loss": NN["SmoothL1Loss"],
    "softmin": "(-x).softmax()",
    "softsign": "x / (1 + x.abs())",
    "swish": "rl.silu(x)",
    "tanhshrink": "x - x.tanh()",
    "threshold": "rl.where(x > 0.5, x, 0.0)",
    "mish": "x * rl.nn.functional.softplus(x).tanh()",
    "selu": "1.0507009873554805 * rl.nn.functional.elu(x, 1.6732632423543772)",
    "hardsigmoid": "(x / 6 + 0.5).clamp(0, 1)",
    "hardswish": "x * (x / 6 + 0.5).clamp(0, 1)",
}
NN |= {
    "Mish": FUNCTIONAL["mish"],
    "SELU": FUNCTIONAL["selu"],
    "Hardsigmoid": FUNCTIONAL["hardsigmoid"],
    "Hardswish": FUNCTIONAL["hardswish"],
    "Softmin": FUNCTIONAL["softmin"],
    "Softsign": FUNCTIONAL["softsign"],
    "PairwiseDistance": FUNCTIONAL["pairwise_distance"],
}
OPTIM = {
    "Adam": "rl.optim.AdamW([w], weight_decay=0)",
    "SGD": "w.detach().sub_(0.1 * w.grad)",
}
SCHEDULERS = {
    "ConstantLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / 3 if step < 5 else 1)",
    "CosineAnnealingWarmRestarts": (
        "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 + math.cos(math.pi * (step % 10) / 10)) / 2)"
    ),
    "ExponentialLR": "rl.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)",
    "MultiStepLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 ** ((step >= 30) + (step >= 80)))",
    "PolynomialLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0, 1 - step / 100) ** 2)",
}
CUDA = {
    "device": 'rl.device("cuda", 0)',
    "get_device_name": "rl.cuda.properties",
    "get_device_properties": "rl.cuda.properties",
    "is_bf16_supported": "rl.cuda.is_available()",
    "manual_seed": "rl.manual_seed(0)",
    "manual_seed_all": "rl.manual_seed(0)",
    "max_memory_allocated": 'rl.memory.peak("cpu")',
    "mem_get_info": "rl.cuda.free_memory",
    "memory_reserved": 'rl.memory.reserved("cpu")',
    "memory_allocated": 'rl.memory.allocated("cpu")',
    "reset_peak_memory_stats": 'rl.memory.reset_peak("cpu")',
    "amp": 'rl.autocast("cuda", dtype="float16")',
    "nvtx": 'rl.range("step")',
    "CUDAGraph": "rl.Graph()",
}
AUTOGRAD = {
    "backward": "rl.ones(1, requires_grad=True).sum().backward()",
    "functional": "rl.autograd.grad",
    "inference_mode": "rl.no_grad()",
    "profiler": "rl.profile",
}
TABLES = {
    "rooflab": FUNCTIONS,
    "rooflab.nn": NN,
    "rooflab.nn.functional": FUNCTIONAL,
    "rooflab.optim": OPTIM,
    "rooflab.optim.lr_scheduler": SCHEDULERS,
    "rooflab.cuda": CUDA,
    "rooflab.autograd": AUTOGRAD,
}
_FAMILIES = {  # what names of PyTorch that begin or end so are about
    "layout": "layouts but strides",
    "Conv": "convolutions",
    "conv": "convolutions",
    "Pool": "pooling",
    "pool": "pooling",
    "RNN": "recurrent layers",
    "LSTM": "recurrent layers",
    "GRU": "recurrent layers",
    "Norm": "norms but LayerNorm and RMSNorm",
    "_norm": "norms but layer_norm and rms_norm",
    "complex": "complex numbers",
    "quant": "quantised tensors",
    "sparse": "sparse tensors",
    "distributed": "several processes",
    "interpolate": "images",
    "Upsample": "images",
    "Pad": "padding layers; write rl.nn.functional.pad(x, (1, 1))",
}


def advice(module: str, name: str) -> str:
    """What follows the error for a name that a module or "Tensor" lacks: what to write, or what rooflab leaves out.

    Parameters
    ----------
    module, name : str
        Where the name was looked for.

    Returns
    -------
    str
        Where nothing is known about a name, how to list those that there are; for "Tensor" nothing.

    Raises
    ------
    Nothing.

    Examples
    --------
    >>> advice("rooflab.optim", "SGD"), advice("rooflab", "Linear")
    ('; write w.detach().sub_(0.1 * w.grad)', '; write rl.nn.Linear')
    >>> advice("rooflab.nn", "Conv2d")
    '; rooflab has no convolutions'
    """
    table = TENSOR if module == "Tensor" else TABLES[module]
    if name in table:
        return f"; write {table[name]}"
    if module != "Tensor":
        for other in (*TABLES, "rooflab.memory"):
            if other != module and name in getattr(importlib.import_module(other), "__all__", ()):
                return f"; write {other.replace('rooflab', 'rl', 1)}.{name}"
    family = next((about for part, about in _FAMILIES.items() if part in name), "")
    if family:
        return f"; rooflab has no {family}"
    return f"; dir({module.replace('rooflab', 'rl', 1)}) lists what there is" if module != "Tensor" else ""


def no_attribute(module: str, name: str) -> AttributeError | ImportError:
    """The error for a name that `module` does not have, for the module's `__getattr__` to raise.

    Python swallows the AttributeError of ``from rooflab import name``, so that gets an ImportError.

    Parameters
    ----------
    module, name : str
        Where the name was looked for.

    Returns
    -------
    AttributeError or ImportError
        With advice, if there is some.

    Raises
    ------
    Nothing.

    Examples
    --------
    >>> no_attribute("rooflab.optim", "Adam")
    AttributeError("module 'rooflab.optim' has no attribute 'Adam'; write rl.optim.AdamW([w], weight_decay=0)")
    """
    told = "" if name.startswith("__") else advice(module, name)
    caller = sys._getframe(1).f_back if sys._getframe(1).f_code.co_name == "__getattr__" else None
    if caller is not None and caller.f_lasti >= 0:
        code = caller.f_code.co_code
        if code[caller.f_lasti] == dis.opmap["IMPORT_FROM"]:
            return ImportError(f"cannot import name {name!r} from {module!r}{told}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{told}", name=name)
