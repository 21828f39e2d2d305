"""Writes extremes.json: functions of PyTorch's with their values and slopes at numbers of all magnitudes, by float32 and by float64."""
import json, os, torch
import torch.nn.functional as F

magnitudes = [2e-38, 1e-30, 1e-10, 1e-4, 0.25, 0.5, 1, 1.5, 3, 6, 10, 20, 30, 44, 87, 100, 1000, 1e10, 3e38]
points = [0.0, -0.0, float("nan"), float("inf"), float("-inf")] + magnitudes + [-m for m in magnitudes]
other = 0.25
filled = lambda x: torch.full_like(x, other)

functions = {
    "abs": torch.abs, "acos": torch.acos, "asin": torch.asin, "atan": torch.atan, "celu": F.celu, "clamp": lambda x: x.clamp(-1, 3),
    "cos": torch.cos, "cosh": torch.cosh, "elu": F.elu, "erf": torch.erf, "exp": torch.exp, "expm1": torch.expm1,
    "gelu": F.gelu, "geluTanh": lambda x: F.gelu(x, approximate="tanh"), "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "hardtanh": F.hardtanh, "leakyRelu": F.leaky_relu,
    "log": torch.log, "log1p": torch.log1p, "log2": torch.log2, "log10": torch.log10, "logsigmoid": F.logsigmoid, "mish": F.mish,
    "pow3": lambda x: x ** 3, "powHalf": lambda x: x ** 0.5, "reciprocal": torch.reciprocal, "relu": F.relu, "relu6": F.relu6,
    "rsqrt": torch.rsqrt, "selu": F.selu, "sigmoid": torch.sigmoid, "silu": F.silu, "sin": torch.sin, "sinh": torch.sinh,
    "softplus": F.softplus, "softshrink": F.softshrink, "softsign": F.softsign, "sqrt": torch.sqrt, "square": torch.square,
    "tanh": torch.tanh, "tanhshrink": F.tanhshrink, "threshold": lambda x: F.threshold(x, 0.5, -2),
    "logaddexp": lambda x: torch.logaddexp(x, filled(x)), "xlogy": lambda x: torch.xlogy(filled(x), x), "hypot": lambda x: torch.hypot(x, filled(x)),
    "atan2": lambda x: torch.atan2(x, filled(x)), "binaryCrossEntropyWithLogits": lambda x: F.binary_cross_entropy_with_logits(x, filled(x), reduction="none"),
    "smoothL1Loss": lambda x: F.smooth_l1_loss(x, filled(x), reduction="none"), "huberLoss": lambda x: F.huber_loss(x, filled(x), reduction="none"),
    "softMarginLoss": lambda x: F.soft_margin_loss(x, torch.ones_like(x), reduction="none"),
    "crossEntropy": lambda x: F.cross_entropy(torch.stack([x, torch.zeros_like(x)], 1), torch.zeros(len(x), dtype=torch.long), reduction="none"),
    "softmax": lambda x: torch.stack([x, torch.zeros_like(x)], 1).softmax(1)[:, 0],
    "logsumexp": lambda x: torch.stack([x, torch.zeros_like(x)], 1).logsumexp(1),
}

def encode(tensor):
    return [v if v == v and abs(v) != float("inf") else str(v) for v in (float(f"{v:.9g}") for v in tensor.tolist())]

def run(function, dtype):
    torch.set_default_dtype(dtype)
    # float64 sees the numbers that float32 holds.
    x = torch.tensor(points, dtype=torch.float32).to(dtype).requires_grad_()
    y = function(x)
    y.sum().backward()
    return {"values": encode(y.detach().float()), "slopes": encode(x.grad.float())}

result = {
    name: {"float32": run(function, torch.float32), "float64": run(function, torch.float64)}
    for name, function in functions.items()
}
with open(os.path.join(os.path.dirname(__file__), "extremes.json"), "w") as file:
    json.dump({"source": f"PyTorch {torch.__version__}, CPU float32", "points": encode(torch.tensor(points, dtype=torch.float32)), "functions": result}, file)
