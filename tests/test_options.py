"""Options and spellings of PyTorch that rooflab's functions lack, and other arguments that do not fit."""

import pytest

import rooflab as rl

F, S = rl.nn.functional, rl.optim.lr_scheduler


def space():
    w = rl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w.sum().backward()
    model, optimizer = rl.nn.Linear(3, 2), rl.optim.AdamW([w])
    made = {"rl": rl, "nn": rl.nn, "F": F, "w": w, "model": model, "optimizer": optimizer, "scaler": rl.GradScaler()}
    with rl.profile() as made["prof"]:
        w.exp()
    return made | {"x": rl.ones(2, 3), "y": rl.zeros(2, 3), "t": rl.tensor([0, 1]), "s": S.StepLR(optimizer, 1)}


# PyTorch's options whose value changes nothing: what is there without them.
CHANGES_NOTHING = {
    "F.softmax(x, dim=1, _stacklevel=3, dtype=None)": "F.softmax(x, dim=1)",
    "F.elu(-x, 1.0, False)": "F.elu(-x)",
    "F.leaky_relu(-x, inplace=False)": "F.leaky_relu(-x)",
    "F.cross_entropy(x, t, None, reduction='sum', label_smoothing=0.0)": "F.cross_entropy(x, t, reduction='sum')",
    "F.mse_loss(x, y, size_average=None, reduce=None)": "F.mse_loss(x, y)",
    "nn.MSELoss(size_average=None)(x, y)": "nn.MSELoss()(x, y)",
    "nn.Dropout(0.5, False).p": "nn.Dropout(0.5).p",
    "nn.Embedding(10, 4, None, sparse=False).weight.shape": "nn.Embedding(10, 4).weight.shape",
    "nn.LayerNorm((3,))(x)": "nn.LayerNorm(3)(x)",
    "nn.utils.clip_grad_norm_([w], 1.0, 2.0, False, foreach=True)": "nn.utils.clip_grad_norm_([w], 1.0)",
    "rl.optim.AdamW([w], amsgrad=False, fused=True, foreach=None, maximize=False)": "rl.optim.AdamW([w])",
    "rl.optim.AdamW([{'params': [w], 'amsgrad': False}]).param_groups[0]['lr']": "0.001",
    "optimizer.step(None)": "None",
    "optimizer.step(closure=None)": "None",
    "s.step(epoch=None)": "None",
    "rl.GradScaler('cuda', init_scale=2.0).get_scale()": "2.0",
    "len(list(model.parameters(recurse=True)))": "2",
    "[name for name, _ in model.named_parameters('', True)]": "['weight', 'bias']",
    "list(model.named_modules(None, prefix='net'))[0][0]": "'net'",
    "nn.ReLU(inplace=False)(-x)": "nn.ReLU()(-x)",
    "model.load_state_dict(model.state_dict(prefix=''), assign=False).missing_keys": "[]",
    "rl.autograd.grad((w * w).sum(), w, create_graph=False)[0]": "2 * w.detach()",
    "rl.compile(lambda x: x + 1, fullgraph=False, backend='inductor')(x)": "x + 1",
    "prof.key_averages().table(max_src_column_width=75, header=None)[:9]": "prof.key_averages().table()[:9]",
    "rl.testing.assert_close(x, x, equal_nan=True, check_dtype=False)": "None",
    "rl.profiler.schedule(wait=1, skip_first=0)": "rl.profiler.schedule(wait=1)",
    "rl.sort(x, stable=True).indices": "rl.sort(x).indices",
    "x.argsort(1, stable=False)": "x.argsort(1)",
    "x.topk(2, sorted=True).values": "x.topk(2).values",
    "rl.add(x, y, alpha=1)": "x + y",
    "rl.zeros(2, layout=None, pin_memory=False)": "rl.zeros(2)",
    "x.to('cpu', non_blocking=True, copy=False)": "x",
    "x.softmax(dim=-1, dtype=None)": "x.softmax(-1)",
    "x.nonzero(as_tuple=False)": "x.nonzero()",
}


@pytest.mark.parametrize(("written", "without"), CHANGES_NOTHING.items())
def test_an_option_that_changes_nothing_is_dropped(written, without):
    assert str(eval(written, space())) == str(eval(without, space()))


# Refused: how the error begins.
REFUSED = {
    "rl.optim.AdamW([w], amsgrad=True)": "[AdamW] amsgrad: no such argument; write rl.optim.AdamW([w])",
    "rl.optim.AdamW([w], differentiable=True)": "[AdamW] differentiable: no such argument; rooflab has no gradients of",
    "optimizer.step(lambda: 1)": "[step] closure: no such argument; write (w * w).sum().backward(); optimizer.step()",
    "s.step(3)": "[step] epoch: no such argument; write optimizer.param_groups[0]['lr'] = 0.01",
    "nn.utils.clip_grad_norm_([w], 1.0, 1.0)": "[clip_grad_norm_] norm_type: expected 2, got 1.0",
    "nn.utils.clip_grad_norm_([w], 1.0, True)": "[clip_grad_norm_] norm_type: expected 2, got True",
    "nn.Embedding(10, 4, 0)": "[Embedding] padding_idx: no such argument; write rl.where(",
    "nn.Embedding(10, 4, padding_idx=0)": "[Embedding] padding_idx: no such argument; write rl.where(",
    "nn.CrossEntropyLoss(label_smoothing=0.1)": "[CrossEntropyLoss] label_smoothing: no such argument; write 0.9 * ",
    "nn.Linear(2, 3, True, 'cpu')": "[Linear] expected at most 3 positional arguments, got 4; expected (in_features,",
    "nn.Linear(3)": "[Linear] out_features: missing; expected (in_features, out_features, bias=True, *, init=..., ",
    "nn.Linear(3, out_feature=3)": "[Linear] out_feature: no such argument; did you mean out_features?",
    "nn.Linear(3, 2, in_features=3)": "[Linear] in_features: given twice; expected",
    "model(input=x)": "[forward] input: no such argument; did you mean x?",
    "nn.LayerNorm((2, 3))": "[LayerNorm] dim: expected the size of the last dimension, got (2, 3)",
    "nn.LayerNorm(normalized_shape=3)": "[LayerNorm] normalized_shape: no such argument; did you mean dim?",
    "nn.RMSNorm([2, 3])": "[RMSNorm] dim: expected the size of the last dimension, got [2, 3]",
    "nn.LayerNorm(3.0)": "[LayerNorm] dim: expected the size of the last dimension, got 3.0",
    "F.cross_entropy(x, t, x[0])": "[cross_entropy] weight: no such argument; write (lambda c: ",
    "F.mse_loss(x, y, 'sum')": "[mse_loss] size_average: no such argument; write rl.nn.functional.mse_loss(x, y, red",
    "F.relu(x, inplace=True)": "[relu] inplace: no such argument; write x.copy_(rl.nn.functional.relu(x))",
    "F.relu(x, True)": "[relu] inplace: no such argument; write x.copy_(rl.nn.functional.relu(x))",
    "F.embedding(t, x, 0)": "[embedding] padding_idx: no such argument; write rl.where(",
    "rl.topk(x, 2, 1, True, True)": "[topk] sorted: no such argument; leave it out, for it changes nothing",
    "rl.add(x, y, variant=2)": "[add] variant: expected str, got int",
    "rl.exp(x, 2)": "[exp] variant: expected str, got int",
    "F.dropout(x, inplace=True)": "[dropout] inplace: no such argument; write x.copy_(rl.nn.functional.dropout(x))",
    "rl.nonzero(x, as_tuple=True)": "[nonzero] as_tuple: no such argument; write tuple(x.nonzero().unbind(1))",
    "rl.add(x, y, alpha=2)": "[add] alpha: no such argument; write x + 2 * y",
    "rl.sub(x, y, alpha=2)": "[sub] alpha: no such argument; write x - 2 * y",
    "x.to('cpu', non_blocking=True, copy=True)": "[to] non_blocking: no such argument; leave it out, for it changes no",
    "x.sort(stable=True, descending='a')": "[sort] descending: expected bool, got str",
    "rl.matmul(x, y, out=x)": "[matmul] out: no such argument; write y.copy_(x + 1)",
    "x.div(y, rounding_mode='floor')": "[div] rounding_mode: no such argument; write x // y",
    "rl.flip(x, dims=(0,))": "[flip] dims: no such argument; did you mean *dims?",
    "rl.diag()": "[diag] x: missing; expected (x, diagonal=0)",
    "model.parameters(recurse=False)": "[parameters] recurse: no such argument; write [each for name",
    "model.named_parameters('', False)": "[named_parameters] recurse: no such argument; write [each for name",
    "model.named_modules(set())": "[named_modules] memo: no such argument; write list(model.named_modules(",
    "prof.key_averages().table(top_level_events_only=True)": "[table] top_level_events_only: no such argument; write",
    "rl.testing.assert_close(x, x, check_device=True)": "[assert_close] check_device: no such argument; write assert ",
    "nn.ReLU(True)": "[ReLU] inplace: no such argument; write x.copy_(x.relu())",
    "nn.SiLU(inplace=True)": "[SiLU] inplace: no such argument; write x.copy_(rl.silu(x))",
    "w.sum().backward(create_graph=True)": "[backward] create_graph: no such argument; rooflab has no gradients of",
    "x.var(unbiased=False)": "[var] unbiased: no such argument; write x.var(correction=0)",
    "rl.optim.AdamW([{'params': [w], 'maximize': True}])": "[AdamW] params: expected options lr, betas, eps, weight",
    "optimizer.param_groups[0].update(maximize=True) or optimizer.step()": "[AdamW] maximize: rooflab's AdamW has no",
    "rl.compile(lambda x: x, mode='max-autotune')": "[compile] mode: no such argument; write rl.compile(model)",
}


@pytest.mark.parametrize(("written", "says"), REFUSED.items())
def test_an_argument_that_does_not_fit_is_told_in_a_sentence(written, says):
    with pytest.raises((TypeError, ValueError)) as raised:
        eval(written, space())
    assert str(raised.value).startswith(says)


def test_an_error_of_the_function_itself_stays():
    calls = []

    class Mine(rl.nn.Module):
        def forward(self, x):
            calls.append(x)
            raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        rl.nn.Sequential(Mine())(1)
    assert calls == [1], "it is called once"


def test_a_compiled_function_watches_nothing_of_how_errors_are_told():
    compiled = rl.compile(lambda x: F.softmax(F.elu(x), 1, _stacklevel=3))
    x = rl.ones(2, 3)
    assert rl.allclose(compiled(x), F.softmax(F.elu(x), 1))
    ((program,),) = compiled._programs.values()
    watched = program.guards._watched._names
    assert "fitting" not in {name for *_, absent, names, _, _ in watched for name in (*absent, *names)}


@pytest.mark.parametrize(
    ("option", "value"), [("amsgrad", True), ("maximize", True), ("decoupled_weight_decay", False)]
)
def test_a_state_of_an_optimizer_that_does_something_else_is_refused(option, value):
    """PyTorch's has these options beside ours."""
    optimizer = space()["optimizer"]
    state = optimizer.state_dict()
    state["param_groups"][0][option] = not value
    optimizer.load_state_dict(state)
    state["param_groups"][0] |= {option: value, "lr": 0.5}
    with pytest.raises(ValueError, match=rf"\[AdamW\] {option}: rooflab's AdamW has no such option, got {value}"):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] != 0.5
