// Gathers a convolution: every output value sums the input values that its window covers. The same kernel computes the
// convolution (scale = stride, divide = 1) and its transpose, which is the gradient of the input (scale = 1,
// divide = stride): the input row of window row k at output row o is (o * scale + shift + k * step) / divide, where
// that is whole and inside.
//
// A workgroup takes 256 output pixels, counted over all images, and 8 output channels of one group. Each invocation
// keeps 4 pixels (64 apart, so that neighbours read neighbours) by 8 channels in registers. What a window position needs
// of bounds and addresses is computed once, outside the loop over channels.

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

  let pixel = vec4u(pixelTile * 4u * lanes + lane) + vec4u(0u, lanes, 2u * lanes, 3u * lanes);
  let bounded = min(pixel, vec4u(params.pixels - 1u));
  let image = bounded / params.outSize;
  let place = bounded - image * params.outSize;
  let outRow = place / params.outWidth;
  let outColumn = place - outRow * params.outWidth;
  let row0 = vec4i(outRow) * params.scale.y + params.shift.y;
  let column0 = vec4i(outColumn) * params.scale.x + params.shift.x;
  let input0 = vec4i((image * params.groups + group) * params.inChannels * params.inSize);

  let lastChannel = params.outChannels - 1u;
  let weight0 = group * params.weightGroupStride;
  let weightLow = weight0 + min(vec4u(channel) + vec4u(0u, 1u, 2u, 3u), vec4u(lastChannel)) * params.weightOutStride;
  let weightHigh = weight0 + min(vec4u(channel) + vec4u(4u, 5u, 6u, 7u), vec4u(lastChannel)) * params.weightOutStride;

  // A uniform costs a load wherever it stands, which a software adapter doesn't hoist.
  let kernelHeight = params.kernelHeight;
  let kernelWidth = params.kernelWidth;
  let inHeight = vec4u(u32(params.inHeight));
  let inWidth = params.inWidth;
  let inSize = params.inSize;
  let inChannels = params.inChannels;
  let weightInStride = params.weightInStride;
  let step = params.step;
  let divide = params.divide;
  let inverse = 1.0 / vec2f(divide);
  var tap0 = 0u;

  var sum0 = vec4f();
  var sum1 = vec4f();
  var sum2 = vec4f();
  var sum3 = vec4f();
  var sum4 = vec4f();
  var sum5 = vec4f();
  var sum6 = vec4f();
  var sum7 = vec4f();
  for (var kernelRow = 0; kernelRow < kernelHeight; kernelRow++) {
    let scaledRow = row0 + kernelRow * step.y;
    let row = quotient(scaledRow, inverse.y);
    // A negative row becomes a huge unsigned one.
    let rowInside = (vec4u(row) < inHeight) & (row * divide.y == scaledRow);
    for (var kernelColumn = 0; kernelColumn < kernelWidth; kernelColumn++) {
      let scaledColumn = column0 + kernelColumn * step.x;
      let column = quotient(scaledColumn, inverse.x);
      let inside = rowInside & (vec4u(column) < vec4u(u32(inWidth))) & (column * divide.x == scaledColumn);
      // Outside, this reads something that isn't used; neighbours' places stay neighbours, which loads fast everywhere.
      var at = vec4u(input0 + row * inWidth + column);
      var tap = tap0;
      tap0++;
      for (var k = 0u; k < inChannels; k++) {
        let value = select(vec4f(), vec4f(input[at.x], input[at.y], input[at.z], input[at.w]), inside);
        sum0 += weight[weightLow.x + tap] * value;
        sum1 += weight[weightLow.y + tap] * value;
        sum2 += weight[weightLow.z + tap] * value;
        sum3 += weight[weightLow.w + tap] * value;
        sum4 += weight[weightHigh.x + tap] * value;
        sum5 += weight[weightHigh.y + tap] * value;
        sum6 += weight[weightHigh.z + tap] * value;
        sum7 += weight[weightHigh.w + tap] * value;
        at += inSize;
        tap += weightInStride;
      }
    }
  }

  let out0 = (image * params.groups + group) * params.outChannels * params.outSize + place;
  let writes = pixel < vec4u(params.pixels);
  // A loop, since a kernel compiles in half the time if the stores stand in it once.
  var sums = array(sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7);
  let channels = min(channelsPerTile, params.outChannels - channel);
  for (var i = 0u; i < channels; i++) {
    store(group * params.outChannels + channel + i, out0 + (channel + i) * params.outSize, writes, sums[i]);
  }
}

// floor(a / b), from 1 / b: a software adapter divides integers one by one. Adding a half makes it exact for |a| < 2^22,
// far beyond any height or width.
fn quotient(a: vec4i, inverse: f32) -> vec4i {
  return vec4i(floor((vec4f(a) + 0.5) * inverse));
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
