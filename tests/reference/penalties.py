"""Writes penalties.json: gradient penalties (second derivatives) of small networks, with the gradients of their weights."""
import json, os, torch
from torch import nn
from modules import encode

torch.manual_seed(1)
x = torch.randn

def case(name, module, shape):
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0, 0.4)
    state = {key: encode(value) for key, value in module.state_dict().items()}
    input = x(shape, requires_grad=True)
    output = module(input)
    # Gulrajani et al. 2017: the critic's slope should have the length 1.
    (slope,) = torch.autograd.grad(output.sum(), input, create_graph=True)
    penalty = ((slope.flatten(1).norm(2, 1) - 1) ** 2).mean() + output.mean()
    penalty.backward()
    gradients = {key: encode(p.grad if p.grad is not None else torch.zeros_like(p)) for key, p in module.named_parameters()}
    return {"name": name, "state": state, "input": encode(input), "penalty": penalty.item(), "gradients": gradients}

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, activation="gelu", batch_first=True)
        self.head = nn.Linear(8, 1)
    def forward(self, input):
        return self.head(self.layer(input).mean(1))

if __name__ == "__main__":
    cases = [
        case("linear layers", nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.SiLU(), nn.Linear(4, 1), nn.Softplus()), (4, 3)),
        case("convolutions", nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.GELU(), nn.AvgPool2d(2), nn.Conv2d(3, 4, 2, stride=2), nn.ELU(), nn.MaxPool2d(2), nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 1)), (3, 2, 8, 8)),
        case("batch norm", nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sigmoid(), nn.Linear(4, 1)), (5, 3)),
        case("attention", Attention(), (2, 5, 8)),
    ]
    with open(os.path.join(os.path.dirname(__file__), "penalties.json"), "w") as file:
        json.dump({"source": f"PyTorch {torch.__version__}", "cases": cases}, file)
