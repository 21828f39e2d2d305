"""Writes modules.json: PyTorch's modules with their state, inputs, outputs and gradients of the inputs."""
import base64, json, os, torch
from torch import nn

torch.manual_seed(0)

def encode(tensor):
    dtype = {torch.float32: "float32", torch.int64: "int64", torch.bool: "bool"}[tensor.dtype]
    array = tensor.detach().contiguous().numpy()
    if dtype == "int64":
        array = array.astype("int32")
    return {"shape": list(tensor.shape), "dtype": dtype, "data": base64.b64encode(array.tobytes()).decode()}

def case(name, module, *inputs, call=None, train=False):
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0, 0.4)
    module.train(train)
    leaves = [i.clone().requires_grad_() if i.is_floating_point() else i for i in inputs]
    state = {key: encode(value) for key, value in module.state_dict().items()}
    outputs = (call or (lambda m, *i: m(*i)))(module, *leaves)
    outputs = [outputs] if torch.is_tensor(outputs) else list(outputs)
    cotangents = [torch.randn_like(output) for output in outputs]
    torch.autograd.backward(outputs, cotangents)
    return {
        "name": name,
        "state": state,
        "inputs": [encode(i) for i in inputs],
        "outputs": [encode(o) for o in outputs],
        "cotangents": [encode(c) for c in cotangents],
        "gradients": [encode(leaf.grad) if leaf.is_floating_point() else None for leaf in leaves],
    }

x = torch.randn
flat = lambda result: [result[0], *(result[1] if isinstance(result[1], tuple) else [result[1]])]
run = lambda module, *inputs: flat(module(*inputs))
causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
if __name__ == "__main__":
    cases = [
        case("RNN", nn.RNN(3, 4), x(5, 2, 3), call=run),
        case("RNN of ReLUs, in two layers and directions", nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True), x(5, 2, 3), call=run),
        case("LSTM in two layers and directions", nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), x(2, 5, 3), call=run),
        case("LSTM with a state", nn.LSTM(3, 4, bias=False), x(5, 2, 3), x(1, 2, 4), x(1, 2, 4), call=lambda m, i, h, c: flat(m(i, (h, c)))),
        case("GRU in two layers", nn.GRU(3, 4, 2), x(5, 2, 3), x(2, 2, 4), call=run),
        case("LSTMCell", nn.LSTMCell(3, 4), x(2, 3), x(2, 4), x(2, 4), call=lambda m, i, h, c: m(i, (h, c))),
        case("GRUCell", nn.GRUCell(3, 4), x(2, 3), x(2, 4)),
        case("MultiheadAttention", nn.MultiheadAttention(8, 2), x(5, 2, 8), x(3, 2, 8), x(3, 2, 8)),
        case("MultiheadAttention of other features, batches first", nn.MultiheadAttention(8, 2, kdim=4, vdim=6, batch_first=True), x(2, 5, 8), x(2, 3, 4), x(2, 3, 6)),
        case("MultiheadAttention with masks", nn.MultiheadAttention(8, 2, bias=False, batch_first=True), x(2, 5, 8), call=lambda m, i: m(i, i, i, key_padding_mask=padding, attn_mask=causal)),
        case("TransformerEncoderLayer", nn.TransformerEncoderLayer(8, 2, 16, dropout=0), x(5, 2, 8), train=True),
        case("TransformerEncoder, norms first", nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0, "gelu", batch_first=True, norm_first=True), 2, nn.LayerNorm(8)), x(2, 5, 8), train=True),
        case("TransformerDecoderLayer", nn.TransformerDecoderLayer(8, 2, 16, dropout=0), x(5, 2, 8), x(3, 2, 8), train=True),
        case("Conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), x(2, 4, 7)),
        case("ConvTranspose1d", nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), x(2, 4, 5)),
        case("ConvTranspose2d", nn.ConvTranspose2d(3, 2, (3, 2), stride=2), x(2, 3, 4, 3)),
        case("Bilinear", nn.Bilinear(3, 4, 5), x(2, 3), x(2, 4)),
        case("InstanceNorm1d", nn.InstanceNorm1d(3, affine=True), x(2, 3, 5)),
        case("InstanceNorm2d with running moments", nn.InstanceNorm2d(3, affine=True, track_running_stats=True), x(2, 3, 4, 5)),
        case("Embedding", nn.Embedding(7, 3), torch.tensor([[3, 3, 0], [6, 1, 3]])),
        case("EmbeddingBag", nn.EmbeddingBag(7, 3, mode="mean"), torch.tensor([[3, 3, 0], [6, 1, 3]])),
        case("PReLU", nn.PReLU(3), x(2, 3, 4)),
        case("TransformerEncoderLayer with masks", nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True), x(2, 5, 8), call=lambda m, i: m(i, causal, padding), train=True),
        case("TransformerDecoderLayer with masks", nn.TransformerDecoderLayer(8, 2, 16, dropout=0, batch_first=True), x(2, 5, 8), x(2, 5, 8), call=lambda m, i, o: m(i, o, causal, None, padding, padding), train=True),
        case("MultiheadAttention without batches", nn.MultiheadAttention(8, 2), x(5, 8), x(3, 8), x(3, 8)),
        case("LPPool1d", nn.LPPool1d(3, 3, stride=2), x(2, 3, 9).abs()),
        case("LPPool2d", nn.LPPool2d(2, (2, 3), ceil_mode=True), x(2, 3, 5, 7)),
        case("MaxUnpool1d", nn.MaxUnpool1d(2), x(2, 3, 3), torch.tensor([[[0, 3, 5]] * 3] * 2)),
        case("MaxUnpool2d", nn.MaxUnpool2d((2, 3), stride=(1, 2), padding=(0, 1)), x(1, 2, 2, 2), torch.tensor([[[[0, 4], [2, 8]]] * 2])),
        case("CosineSimilarity", nn.CosineSimilarity(), x(2, 3, 4), x(2, 3, 4)),
        case("PairwiseDistance", nn.PairwiseDistance(3, keepdim=True), x(2, 3, 4), x(2, 3, 4)),
    ]
    with open(os.path.join(os.path.dirname(__file__), "modules.json"), "w") as file:
        json.dump({"source": f"PyTorch {torch.__version__}", "cases": cases}, file)
