// Gathers a convolution: every output value sums the input values that its window covers. The same kernel computes the
// convolution (scale = stride, divide = 1) and its transpose, which is the gradient of the input (scale = 1,
// divide = stride): the input row of window row k at output row o is (o * scale + shift + k * step) / divide, where
// that is whole and inside.
//
// A workgroup takes 512 output pixels, counted over all images, and 8 output channels of one group. Each invocation
// keeps 8 pixels (64 apart, so that neighbours read neighbours) by 8 channels in registers. What a window position needs
// of bounds and addresses is computed once, outside the loop over channels. Window rows and columns share one loop,
// since leaving a loop costs a software adapter more than what stands in it.

struct Params {
  // Output values of one channel, over all images.
  pixels: u32,
  outSize: u32,
  outWidth: u32,
  inSize: u32,
  inHeight: i32,
  inWidth: i32,
  groups: u32,
  outChannels: u32,
  inChannels: u32,
  kernelHeight: i32,
  kernelWidth: i32,
  weightGroupStride: u32,
  weightOutStride: u32,
  weightInStride: u32,
  hasBias: u32,
  workgroups: u32,
  scale: vec2i,
  shift: vec2i,
  step: vec2i,
  divide: vec2i,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

const lanes = 64u;
const channelsPerTile = 8u;

// Four output pixels: where they lie, and where their windows begin.
struct Pixels {
  exists: vec4<bool>,
  image: vec4u,
  place: vec4u,
  row: vec4i,
  column: vec4i,
}

fn pixelsFrom(first: u32) -> Pixels {
  let pixel = vec4u(first) + vec4u(0u, lanes, 2u * lanes, 3u * lanes);
  let bounded = min(pixel, vec4u(params.pixels - 1u));
  let image = bounded / params.outSize;
  let place = bounded - image * params.outSize;
  let outRow = place / params.outWidth;
  let outColumn = place - outRow * params.outWidth;
  let row = vec4i(outRow) * params.scale.y + params.shift.y;
  let column = vec4i(outColumn) * params.scale.x + params.shift.x;
  return Pixels(pixel < vec4u(params.pixels), image, place, row, column);
}

// floor(a / b), from 1 / b. Adding a half makes it exact for |a| < 2^22, far beyond any height or width.
fn quotient(a: vec4i, inverse: f32) -> vec4i {
  return vec4i(floor((vec4f(a) + 0.5) * inverse));
}

@compute @workgroup_size(lanes)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (index >= params.workgroups) {
    return;
  }
  let channelTiles = (params.outChannels + channelsPerTile - 1u) / channelsPerTile;
  let channel = (index % channelTiles) * channelsPerTile;
  let group = (index / channelTiles) % params.groups;
  let pixelTile = index / (channelTiles * params.groups);
  let near = pixelsFrom(pixelTile * 8u * lanes + lane);
  let far = pixelsFrom(pixelTile * 8u * lanes + 4u * lanes + lane);
  let nearInput = vec4i((near.image * params.groups + group) * params.inChannels * params.inSize);
  let farInput = vec4i((far.image * params.groups + group) * params.inChannels * params.inSize);

  let lastChannel = vec4u(params.outChannels - 1u);
  let weight0 = group * params.weightGroupStride;
  let low = weight0 + min(vec4u(channel) + vec4u(0u, 1u, 2u, 3u), lastChannel) * params.weightOutStride;
  let high = weight0 + min(vec4u(channel) + vec4u(4u, 5u, 6u, 7u), lastChannel) * params.weightOutStride;

  // A uniform costs a load wherever it stands, which a software adapter doesn't hoist.
  let taps = u32(params.kernelHeight * params.kernelWidth);
  let kernelWidth = params.kernelWidth;
  let inHeight = vec4u(u32(params.inHeight));
  let inWidth = params.inWidth;
  let inSize = params.inSize;
  let inChannels = params.inChannels;
  let weightInStride = params.weightInStride;
  let step = params.step;
  let divide = params.divide;
  let inverse = 1.0 / vec2f(divide);
  var kernelRow = 0;
  var kernelColumn = 0;

  var near0 = vec4f();
  var near1 = vec4f();
  var near2 = vec4f();
  var near3 = vec4f();
  var near4 = vec4f();
  var near5 = vec4f();
  var near6 = vec4f();
  var near7 = vec4f();
  var far0 = vec4f();
  var far1 = vec4f();
  var far2 = vec4f();
  var far3 = vec4f();
  var far4 = vec4f();
  var far5 = vec4f();
  var far6 = vec4f();
  var far7 = vec4f();
  for (var tap = 0u; tap < taps; tap++) {
    let nearScaledRow = near.row + kernelRow * step.y;
    let nearScaledColumn = near.column + kernelColumn * step.x;
    let nearRow = quotient(nearScaledRow, inverse.y);
    let nearColumn = quotient(nearScaledColumn, inverse.x);
    // A negative place becomes a huge unsigned one.
    let nearInside = (vec4u(nearRow) < inHeight) & (vec4u(nearColumn) < vec4u(u32(inWidth))) &
      (nearRow * divide.y == nearScaledRow) & (nearColumn * divide.x == nearScaledColumn);
    let farScaledRow = far.row + kernelRow * step.y;
    let farScaledColumn = far.column + kernelColumn * step.x;
    let farRow = quotient(farScaledRow, inverse.y);
    let farColumn = quotient(farScaledColumn, inverse.x);
    let farInside = (vec4u(farRow) < inHeight) & (vec4u(farColumn) < vec4u(u32(inWidth))) &
      (farRow * divide.y == farScaledRow) & (farColumn * divide.x == farScaledColumn);
    // Outside, this reads something that isn't used; neighbours' places stay neighbours, which loads fast everywhere.
    var nearAt = vec4u(nearInput + nearRow * inWidth + nearColumn);
    var farAt = vec4u(farInput + farRow * inWidth + farColumn);
    var at = tap;
    for (var k = 0u; k < inChannels; k++) {
      let nearValue =
        select(vec4f(), vec4f(input[nearAt.x], input[nearAt.y], input[nearAt.z], input[nearAt.w]), nearInside);
      let farValue = select(vec4f(), vec4f(input[farAt.x], input[farAt.y], input[farAt.z], input[farAt.w]), farInside);
      let weightLow = vec4f(weight[low.x + at], weight[low.y + at], weight[low.z + at], weight[low.w + at]);
      let weightHigh = vec4f(weight[high.x + at], weight[high.y + at], weight[high.z + at], weight[high.w + at]);
      near0 += weightLow.x * nearValue;
      far0 += weightLow.x * farValue;
      near1 += weightLow.y * nearValue;
      far1 += weightLow.y * farValue;
      near2 += weightLow.z * nearValue;
      far2 += weightLow.z * farValue;
      near3 += weightLow.w * nearValue;
      far3 += weightLow.w * farValue;
      near4 += weightHigh.x * nearValue;
      far4 += weightHigh.x * farValue;
      near5 += weightHigh.y * nearValue;
      far5 += weightHigh.y * farValue;
      near6 += weightHigh.z * nearValue;
      far6 += weightHigh.z * farValue;
      near7 += weightHigh.w * nearValue;
      far7 += weightHigh.w * farValue;
      nearAt += inSize;
      farAt += inSize;
      at += weightInStride;
    }
    kernelColumn++;
    let wraps = kernelColumn == kernelWidth;
    kernelRow += select(0, 1, wraps);
    kernelColumn = select(kernelColumn, 0, wraps);
  }

  // A loop, since a kernel compiles in half the time if the stores stand in it once.
  var nearSums = array(near0, near1, near2, near3, near4, near5, near6, near7);
  var farSums = array(far0, far1, far2, far3, far4, far5, far6, far7);
  let groupChannel = group * params.outChannels;
  let nearOut = (near.image * params.groups + group) * params.outChannels * params.outSize + near.place;
  let farOut = (far.image * params.groups + group) * params.outChannels * params.outSize + far.place;
  let end = min(channel + channelsPerTile, params.outChannels);
  for (var c = channel; c < end; c++) {
    store(groupChannel + c, nearOut + c * params.outSize, near.exists, nearSums[c - channel]);
    store(groupChannel + c, farOut + c * params.outSize, far.exists, farSums[c - channel]);
  }
}

fn store(channel: u32, at: vec4u, writes: vec4<bool>, sum: vec4f) {
  var value = sum;
  if (params.hasBias != 0u) {
    value += bias[channel];
  }
  if (writes.x) {
    output[at.x] = value.x;
  }
  if (writes.y) {
    output[at.y] = value.y;
  }
  if (writes.z) {
    output[at.z] = value.z;
  }
  if (writes.w) {
    output[at.w] = value.w;
  }
}
