"""What to write instead of names in the modules of PyTorch that rooflab does not have. `functions` says what x is."""

from __future__ import annotations

__all__ = ["AUTOGRAD", "CUDA", "FUNCTIONAL", "NN", "OPTIM", "SCHEDULERS", "UTILS"]

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
UTILS = {
    "clip_grad_norm": "rl.nn.utils.clip_grad_norm_([w], 1.0)",
    "clip_grad_value_": "w.grad.copy_(w.grad.clamp(-1, 1))",
    "clip_grads_with_norm_": "rl.nn.utils.clip_grad_norm_([w], 1.0)",
    "get_total_norm": "rl.stack([(p.grad**2).sum() for p in [w]]).sum().sqrt()",
    "init": NN["init"],
    "parameters_to_vector": "rl.cat([p.flatten() for p in model.parameters()])",
    "skip_init": "rl.nn.Linear(3, 2)",
    "vector_to_parameters": "[p.data.copy_(rl.zeros(p.numel()).reshape(p.shape)) for p in model.parameters()]",
}
OPTIM = {
    "Adam": "rl.optim.AdamW([w], weight_decay=0)",
    "Optimizer": "rl.optim.AdamW([w])",
    "SGD": "w.detach().sub_(0.1 * w.grad)",
}
SCHEDULERS = {
    "ChainedScheduler": ("rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10) * 0.9**step)"),
    "ConstantLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / 3 if step < 5 else 1)",
    "CosineAnnealingWarmRestarts": (
        "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 + math.cos(math.pi * (step % 10) / 10)) / 2)"
    ),
    "ExponentialLR": "rl.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)",
    "CyclicLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 + 0.9 * abs(1 - step / 10 % 2))",
    "MultiStepLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 ** ((step >= 30) + (step >= 80)))",
    "MultiplicativeLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.95**step)",
    "OneCycleLR": (
        "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rl.optim.warmup_cosine(step, 1.0, 0.0, 30, 100))"
    ),
    "ReduceLROnPlateau": 'optimizer.param_groups[0]["lr"] *= 0.1',
    "PolynomialLR": "rl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0, 1 - step / 100) ** 2)",
}
CUDA = {
    "device": 'rl.device("cuda", 0)',
    "get_device_name": "rl.cuda.properties(0).name",
    "get_device_capability": "divmod(rl.cuda.properties(0).compute_capability, 10)",
    "get_device_properties": "rl.cuda.properties(0)",
    "is_bf16_supported": "rl.cuda.properties(0).compute_capability >= 80",
    "manual_seed": "rl.manual_seed(0)",
    "manual_seed_all": "rl.manual_seed(0)",
    "max_memory_allocated": 'rl.memory.peak("cuda")',
    "mem_get_info": "(rl.cuda.free_memory(0), rl.cuda.properties(0).memory_bytes)",
    "memory_snapshot": 'rl.memory.snapshot("cuda")',
    "memory_stats": 'rl.memory.snapshot("cuda")',
    "memory_summary": 'rl.memory.snapshot("cuda")',
    "memory_reserved": 'rl.memory.reserved("cuda")',
    "memory_allocated": 'rl.memory.allocated("cuda")',
    "reset_peak_memory_stats": 'rl.memory.reset_peak("cuda")',
    "amp": 'rl.autocast("cuda", dtype="float16")',
    "nvtx": 'rl.range("step")',
    "CUDAGraph": "rl.Graph()",
}
AUTOGRAD = {
    "backward": "rl.ones(1, requires_grad=True).sum().backward()",
    "Variable": "rl.tensor(array, requires_grad=True)",
    "functional": "rl.autograd.grad((w * w).sum(), w)",
    "inference_mode": "rl.no_grad()",
    "profiler": "rl.profile",
}
