import { expect, test } from "vitest";
import * as torch from "./index";
import { tensor } from "./index";

const matrix = torch.zeros([2, 3]);
const cube = torch.zeros([2, 3, 4]);
const vector = torch.zeros([3]);
const integers = tensor(new Int32Array([0, 1]));

/** Each call with what is said about it, without a device: mistakes are found when an operation is recorded. */
const mistakes: readonly (readonly [call: () => unknown, sentence: string])[] = [
  [
    () => torch.hypot(matrix, torch.zeros([4])),
    "hypot: the shapes [2, 3] and [4] don't broadcast; expected sizes that are equal or 1, counted from the last dimension.",
  ],
  [() => torch.cumsum(matrix, 2), "cumsum: dim is 2; expected an integer from -2 to 1."],
  [
    () => torch.matmul(matrix.half(), torch.zeros([3, 2])),
    "matmul: the operands are float16[2, 3] and float32[3, 2]; expected one type. Use to(), or autocast.",
  ],
  [
    () => torch.linear(matrix, torch.zeros([4, 3], { dtype: "bfloat16" })),
    "linear: the input is float32[2, 3] and the weight bfloat16[4, 3]; expected one type. Use to(), or autocast.",
  ],
  [
    () => torch.conv2d(torch.zeros([1, 1, 3, 3], { dtype: "float16" }), torch.zeros([1, 1, 2, 2])),
    "conv2d: the input is float16 and the weight float32; expected one type. Use to(), or autocast.",
  ],
  [() => torch.round(matrix, 0.5), "round: decimals is 0.5; expected an integer."],
  [() => torch.gather(matrix, 0, vector), "gather: the index is float32[3]; expected int32."],
  [
    () => torch.gather(matrix, 0, integers),
    "gather: the index has shape [2] and the input [2, 3]; expected as many dimensions, and sizes no larger but in dimension 0.",
  ],
  [
    () => torch.scatter(vector, 0, integers, torch.zeros([1])),
    "scatter: the source has shape [1] and the index [2]; expected sizes of at least the index's.",
  ],
  [
    () => torch.indexAdd(matrix, 1, integers, matrix),
    "indexAdd: the source has shape [2, 3]; expected the input's [2, 3] with 2 entries in dimension 1.",
  ],
  [() => torch.topk(vector, 4), "topk: k is 4; expected an integer from 0 to 3, the size of dimension 0 of [3]."],
  [
    () => torch.searchsorted(matrix, vector),
    "searchsorted: the sequence has shape [2, 3] and the values [3]; expected a vector, or equal shapes but for the last dimension.",
  ],
  [() => torch.median(torch.zeros([0]), 0), "median: the input has shape [0]; expected at least one element."],
  [
    () => torch.einsum("ij,jk", matrix, matrix),
    'einsum: the label j of "ij,jk" has sizes 3 and 2; expected equal ones, or 1.',
  ],
  [
    () => torch.einsum("ij->ik", matrix),
    'einsum: the equation "ij->ik" has k in its result; expected labels of its operands, each once.',
  ],
  [
    () => torch.einsum("ij", cube),
    'einsum: the operand "ij" of "ij" has shape [2, 3, 4]; expected a letter for each dimension, or "..." for some.',
  ],
  [
    () => torch.tensordot(matrix, cube, [[1], [0]]),
    "tensordot: got shapes [2, 3] and [2, 3, 4] and dims [1] and [0]; expected pairs of dimensions of equal size.",
  ],
  [
    () => torch.norm(vector, "nuc"),
    "norm: the nuclear norm of a tensor of shape [3] over dim null; expected a matrix, or two dimensions.",
  ],
  [
    () => torch.split(matrix, [1, 1], 1),
    "split: the sizes are [1, 1]; expected integers that add up to 3, the size of dimension 1.",
  ],
  [
    () => torch.unflatten(matrix, 1, [2, 2]),
    "unflatten: the sizes are [2, 2]; expected ones with the product 3, the size of dimension 1.",
  ],
  [
    () => torch.constantPadNd(matrix, [1]),
    "constantPadNd: pad is [1]; expected a pair of integers for each of at most 2 dimensions.",
  ],
  [() => torch.roll(matrix, [1, 2], [0]), "roll: there are 2 shifts and 1 dims; expected as many."],
  [() => torch.repeat(matrix, [2]), "repeat: repeats is [2]; expected a count for each of 2 dimensions."],
  [
    () => torch.movedim(cube, [0, 0], [1, 2]),
    "movedim: source is [0,0] and destination [1,2]; expected as many dimensions, each once.",
  ],
  [
    () => torch.index(matrix, 0, 1, 2),
    "index: there are 3 indices and 0 ellipses for shape [2, 3]; expected at most 2, and one ellipsis.",
  ],
  [
    () => torch.index(matrix, torch.slice(null, null, -1)),
    "index: the slice is ::-1; expected integers, and a step of at least 1.",
  ],
  [
    () => torch.addbmm(matrix, cube, torch.zeros([3, 4, 5])),
    "addbmm: got batches of shapes [2, 3, 4] and [3, 4, 5]; expected [B, M, K] and [B, K, N].",
  ],
  [() => torch.tril(vector), "tril: the input has shape [3]; expected at least 2 dimensions."],
];

for (const [call, sentence] of mistakes)
  test(`a mistake is said at the call: ${sentence}`, () => {
    expect(call).toThrow(sentence);
    expect(call).toThrow(torch.OperatorError);
  });
