"""Options of PyTorch's functions that rooflab does not have: the values that change nothing, and what to write else."""

from __future__ import annotations

from typing import Any

__all__ = ["OPTIONS", "changes_nothing", "following", "instead_of"]

_ANY = object()  # whatever the option's value is, the result is the same
_NO_SECOND = "rooflab has no gradients of gradients"
_OWN_NAMES = "[each for name, each in model.named_{}() if '.' not in name]"
_EMBEDDED = "rl.nn.Embedding(10, 4)(index)"
_PADDED = f"rl.where((index == 0).unsqueeze(-1), 0.0, {_EMBEDDED})"
_SHORT_ROWS = "x / (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1)"
_PER_CLASS = "(lambda c: (c * rl.cross_entropy(x, index[0, :2], reduction='none')).sum() / c.sum())(y[0][index[0, :2]])"
_SMOOTH = "0.9 * rl.cross_entropy(x, index[0, :2]) - 0.1 * x.log_softmax().mean()"
_REDUCED = {"size_average": "sum", "reduce": "none"}

# By name, or function and name: the values that change nothing, and an expression or statement for the others, which a
# test runs; `functions` says what x is. The first of a function is what PyTorch has after rooflab's last argument.
OPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    "_stacklevel": ((_ANY,), ""),
    "foreach": ((_ANY,), ""),
    "fused": ((_ANY,), ""),
    "non_blocking": ((_ANY,), ""),
    "stable": ((_ANY,), ""),  # equal numbers keep their order
    "weights_only": ((_ANY,), ""),  # files hold nothing else
    "output_size": ((_ANY,), ""),
    "inplace": ((False,), "x.copy_(x.relu())"),
    **{
        f"{name}.inplace": ((False,), f"x.copy_(rl.nn.functional.{name}(x))")
        for name in ("dropout", "elu", "leaky_relu", "relu", "silu")
    },
    "out": ((None,), "y.copy_(x + 1)"),
    "layout": ((None,), "rl.zeros(2, 3)"),
    "memory_format": ((None,), "x.contiguous()"),
    "pin_memory": ((False, None), "rl.zeros(2, 3)"),
    "generator": ((None,), "rl.manual_seed(0)"),
    "clamp.Tensor": ((), "x.maximum(y).minimum(y + 1)"),  # in the place of a number
    "add.alpha": ((1,), "x + 2 * y"),
    "sub.alpha": ((1,), "x - 2 * y"),
    "add_.alpha": ((1,), "x.add_(2 * y)"),
    "sub_.alpha": ((1,), "x.sub_(2 * y)"),
    "div.rounding_mode": ((None,), "x // y  # or (x / y).trunc()"),
    "div_.rounding_mode": ((None,), "x.copy_(x // y)  # or (x / y).trunc()"),
    "nonzero.as_tuple": ((False,), "tuple(x.nonzero().unbind(1))"),
    "topk.sorted": ((_ANY,), ""),
    "unique.dim": ((None,), "np.unique(x.numpy(), axis=0)"),
    "softmax.dtype": ((None,), "x.double().softmax()"),
    "log_softmax.dtype": ((None,), "x.double().log_softmax()"),
    "cumsum.dtype": ((None,), "x.double().cumsum(0)"),
    "gather.sparse_grad": ((False,), "x.gather(0, index)"),
    "randint.requires_grad": ((False,), "rl.randint(0, 5, (2, 3))"),
    "randperm.requires_grad": ((False,), "rl.randperm(5)"),
    "randperm.dtype": ((None,), "rl.randperm(5).to('int32')"),
    "stride.dim": ((None,), "x.stride()[0]"),
    "numpy.force": ((False,), "x.detach().cpu().numpy()"),
    "backward.create_graph": ((False,), _NO_SECOND),
    "backward.inputs": ((None,), "rl.autograd.grad((w * w).sum(), w)"),
    "from_dlpack.device": ((None,), "rl.from_dlpack(array).to('cpu')"),
    "from_dlpack.copy": ((None, False), "rl.from_dlpack(array).clone()"),
    "to.copy": ((False,), "x.to('float64').clone()"),
    "var.unbiased": ((True,), "x.var(correction=0)"),
    "std.unbiased": ((True,), "x.std(correction=0)"),
    "cuda.device": ((None,), "x.to('cuda:0')"),
    "permute.dims": ((), "x.permute(1, 0)"),
    "reshape.shape": ((), "x.reshape(3, 2)"),
    "view.shape": ((), "x.view(3, 2)"),
    "expand.size": ((), "x.expand(4, 2, 3)"),
    "repeat.repeats": ((), "x.repeat(2, 1)"),
    **{f"{name}.size": ((), f"rl.{name}(2, 3)") for name in ("empty", "ones", "rand", "randn", "zeros")},
    **{
        f"{name}.requires_grad": ((False,), "x.new_zeros((2, 3)).requires_grad_()")
        for name in ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")
    },
    "cross_entropy.weight": ((None,), _PER_CLASS),
    "cross_entropy.label_smoothing": ((0,), _SMOOTH),
    "nll_loss.weight": ((None,), _PER_CLASS.replace("cross_entropy(x", "nn.functional.nll_loss(x.log_softmax()")),
    "CrossEntropyLoss.weight": ((None,), _PER_CLASS),
    "CrossEntropyLoss.label_smoothing": ((0,), _SMOOTH),
    **{
        f"{name}.{option}": ((None,), f"rl.nn.functional.{name}(x, y, reduction='{reduction}')")
        for name in ("mse_loss", "l1_loss")
        for option, reduction in _REDUCED.items()
    },
    **{
        f"{name}.{option}": ((None,), f"rl.cross_entropy(x, index[0, :2], reduction='{reduction}')")
        for name in ("cross_entropy", "nll_loss", "CrossEntropyLoss")
        for option, reduction in _REDUCED.items()
    },
    **{f"MSELoss.{option}": ((None,), f"rl.nn.MSELoss(reduction='{each}')") for option, each in _REDUCED.items()},
    "scatter.reduce": ((None,), "x.scatter_add(0, index, y)"),
    "mse_loss.weight": ((None,), "(y * (x - y) ** 2).sum() / y.sum()"),
    "l1_loss.weight": ((None,), "(y * (x - y).abs()).sum() / y.sum()"),
    "Embedding.padding_idx": ((None,), _PADDED),
    "Embedding.max_norm": ((None,), _SHORT_ROWS),
    "Embedding.norm_type": ((_ANY,), ""),  # of max_norm
    "Embedding.scale_grad_by_freq": ((False,), _EMBEDDED),
    "Embedding.sparse": ((False,), _EMBEDDED),
    "Embedding._freeze": ((False,), "rl.nn.Embedding(10, 4).requires_grad_(False)"),
    "Embedding._weight": ((None,), "rl.nn.Embedding(2, 3, init=lambda *shape, **where: x)"),
    "embedding.padding_idx": ((None,), _PADDED),
    "embedding.max_norm": ((None,), _SHORT_ROWS),
    "embedding.norm_type": ((_ANY,), ""),
    "embedding.scale_grad_by_freq": ((False,), _EMBEDDED),
    "embedding.sparse": ((False,), _EMBEDDED),
    "RMSNorm.elementwise_affine": ((True,), "rl.nn.functional.rms_norm(x, (3,))"),
    "Dropout.inplace": ((False,), "rl.nn.Dropout(0.5)"),
    "ReLU.inplace": ((False,), "x.copy_(x.relu())"),
    "SiLU.inplace": ((False,), "x.copy_(rl.silu(x))"),
    "parameters.recurse": ((True,), _OWN_NAMES.format("parameters")),
    "named_parameters.recurse": ((True,), _OWN_NAMES.format("parameters")),
    "buffers.recurse": ((True,), _OWN_NAMES.format("buffers")),
    "named_buffers.recurse": ((True,), _OWN_NAMES.format("buffers")),
    "named_modules.memo": ((None,), "list(model.named_modules(prefix='net'))"),
    "modules.remove_duplicate": ((True,), "list(model.modules())"),
    "named_modules.remove_duplicate": ((True,), "list(model.named_modules())"),
    "load_state_dict.assign": ((False,), "model.load_state_dict(model.state_dict())"),
    "state_dict.destination": ((None,), "dict(model.state_dict())"),
    "state_dict.prefix": (("",), "{'head.' + name: each for name, each in model.state_dict().items()}"),
    "state_dict.keep_vars": ((False,), "dict(model.named_parameters())"),
    "prepend": ((False,), "model.register_forward_hook(lambda module, args, y: y)"),
    "with_kwargs": ((False,), "model.register_forward_hook(lambda module, args, y: y)"),
    "always_call": ((False,), "model.register_forward_hook(lambda module, args, y: y)"),
    "AdamW.amsgrad": ((False,), "rl.optim.AdamW([w])"),
    "AdamW.maximize": ((False,), "(-(w * w).sum()).backward()"),
    "AdamW.decoupled_weight_decay": ((True,), "rl.optim.AdamW([w])"),
    "AdamW.differentiable": ((False,), _NO_SECOND),
    "AdamW.step.closure": ((None,), "(w * w).sum().backward(); optimizer.step()"),
    "LRScheduler.step.epoch": ((None,), "optimizer.param_groups[0]['lr'] = 0.01"),
    "GradScaler.device": (("cuda", "cpu"), "rl.GradScaler()"),
    "GradScaler.update.new_scale": ((None,), "rl.GradScaler(init_scale=1024.0)"),
    "autocast.cache_enabled": ((True, None), "rl.autocast('bfloat16')"),
    "grad.create_graph": ((False,), _NO_SECOND),
    "grad.only_inputs": ((True,), "rl.autograd.grad((w * w).sum(), w)"),
    "grad.allow_unused": ((None, False), "rl.autograd.grad((w * w).sum(), w)"),
    "grad.is_grads_batched": ((False,), "[rl.autograd.grad((w * each).sum(), w) for each in (1.0, 2.0)]"),
    "grad.materialize_grads": ((False,), "rl.autograd.grad((w * w).sum(), w)"),
    "compile.fullgraph": ((False,), "rl.compile(model)"),
    "compile.dynamic": ((None, False), "rl.compile(model)"),
    "compile.backend": ((None, "inductor"), "rl.compile(model)"),
    "compile.mode": ((None, "default"), "rl.compile(model)"),
    "compile.options": ((None,), "rl.compile(model)"),
    "compile.name": ((_ANY,), ""),
    "compile.recompile_limit": ((_ANY,), ""),
    "compile.isolate_recompiles": ((_ANY,), ""),
    "compile.dynamic_shapes": ((None,), "rl.compile(model)"),
    "compile.disable": ((False,), "model(x)"),
    "profile.on_trace_ready": ((None,), "prof.export_chrome_trace"),
    "profile.profile_memory": ((False,), "rl.benchmark_memory(model, x)"),
    "profile.with_flops": ((_ANY,), ""),  # each kernel has them
    "profile.with_modules": ((False,), "rl.profile(with_stack=True)"),
    "profile.experimental_config": ((None,), "rl.profile()"),
    "profile.execution_trace_observer": ((None,), "rl.profile()"),
    "profile.acc_events": ((_ANY,), ""),
    "profile.custom_trace_id_callback": ((_ANY,), ""),
    "profile.post_processing_timeout_s": ((_ANY,), ""),
    **{
        f"export_chrome_trace.{option}": ((_ANY,), "")
        for option in ("use_python_export", "cuda_graph_annotations", "graph_lanes", "default_stream")
    },
    "key_averages.group_by_overload_name": ((False,), "prof.key_averages()"),
    "key_averages.include_python_functions": ((False,), "prof.key_averages()"),
    "table.max_src_column_width": ((_ANY,), ""),
    "table.max_shapes_column_width": ((_ANY,), ""),
    "table.header": ((None,), "'My model\\n' + prof.key_averages().table()"),
    "table.top_level_events_only": ((False,), "prof.key_averages().table()"),
    "table.time_unit": ((None,), "prof.key_averages().table()"),
    "assert_close.equal_nan": ((True,), "rl.testing.assert_close(x.isfinite(), y.isfinite())"),
    "assert_close.allow_subclasses": ((_ANY,), ""),
    **{f"assert_close.check_{what}": ((False,), f"assert x.{what} == y.{what}") for what in ("dtype", "device")},
    "assert_close.check_layout": ((_ANY,), ""),
    "assert_close.check_stride": ((False,), "assert x.stride() == y.stride()"),
    "assert_close.msg": ((None,), "rl.testing.assert_close(x, x, name='my result')"),
    "schedule.skip_first_wait": ((0,), "rl.profiler.schedule(wait=10)"),
    "schedule.skip_first": ((0,), "rl.profiler.schedule(wait=10)"),
    "save._use_new_zipfile_serialization": ((_ANY,), ""),
    "save._disable_byteorder_record": ((_ANY,), ""),
    "load.pickle_module": ((None,), "rl.load"),
    "load.mmap": ((None, False), "rl.load"),
    "save.pickle_module": ((None,), "rl.save"),
    "save.pickle_protocol": ((_ANY,), ""),
    "Event.blocking": ((False,), "rl.cuda.Event()"),
    "Event.interprocess": ((False,), "rl.cuda.Event()"),
    "Event.external": ((False,), "rl.cuda.Event()"),
    "Stream.priority": ((0,), "rl.cuda.Stream()"),
}


def _entry(function: str, option: str) -> tuple[tuple[Any, ...], str]:
    short = f"{function.rpartition('.')[2]}.{option}"
    return OPTIONS.get(f"{function}.{option}") or OPTIONS.get(short) or OPTIONS.get(option) or ((), "")


def following(function: str) -> str:
    """The option that PyTorch's function has after rooflab's last argument; empty if there is none.

    Examples
    --------
    >>> following("Embedding")
    'padding_idx'
    """
    names = (function, function.rpartition(".")[2])
    return next((each.rpartition(".")[2] for each in OPTIONS if each.rpartition(".")[0] in names), "")


def changes_nothing(function: str, option: str, value: object) -> bool:
    """Whether PyTorch's result with the option is what rooflab's function gives without it.

    Parameters
    ----------
    function, option : str
        Their names.
    value : object
        What was given.

    Returns
    -------
    bool
        False for an option that PyTorch does not have either.

    Examples
    --------
    >>> changes_nothing("AdamW", "amsgrad", False), changes_nothing("AdamW", "amsgrad", True)
    (True, False)
    """
    values = _entry(function, option)[0]
    return _ANY in values or (isinstance(value, (bool, int, float, str, type(None))) and value in values)


def instead_of(function: str, option: str, value: object) -> str:
    """What follows the error for an option that a function lacks.

    Parameters
    ----------
    function, option : str
        Their names.
    value : object
        What was given.

    Returns
    -------
    str
        Empty for an option that PyTorch does not have either.

    Examples
    --------
    >>> instead_of("add", "alpha", 2), instead_of("add", "alpha", 1)
    ('; write x + 2 * y', '; leave it out, for it changes nothing')
    """
    if changes_nothing(function, option, value):
        return "; leave it out, for it changes nothing"
    write = _entry(function, option)[1]
    return f"; {write}" if write.startswith("rooflab has no") else f"; write {write}" if write else ""
