// The gradient of a convolution's weight: for each output channel and each tap (input channel, window row, window
// column), the sum over all pixels of all images of the output's gradient times the input under the tap.
//
// A workgroup takes 8 output channels by 8 taps of one group over one slice of the pixels. Its 32 invocations go through
// the slice's pixels side by side, so that neighbours read neighbours, each with its own 64 sums, which it leaves as a
// partial gradient of its own: `output` holds 32 of them for each slice. Adding them in workgroup memory would cost a
// software adapter more than the pass over them that follows.

struct Params {
  pixels: u32,
  pixelsPerSlice: u32,
  outSize: u32,
  outWidth: u32,
  inSize: u32,
  inHeight: i32,
  inWidth: i32,
  groups: u32,
  outChannels: u32,
  inChannels: u32,
  kernelSize: u32,
  kernelWidth: u32,
  stride: vec2i,
  shift: vec2i,
  dilation: vec2i,
  workgroups: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> outputGradient: array<f32>;
@group(0) @binding(2) var<storage, read> input: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

const lanes = 32u;
const tile = 8u;

/** Four taps: their distance from a window's first input value, and their row and column in the window. */
struct Taps {
  offset: vec4i,
  row: vec4i,
  column: vec4i,
}

fn taps(first: vec4u) -> Taps {
  let tap = min(first, vec4u(params.inChannels * params.kernelSize - 1u));
  let channel = tap / params.kernelSize;
  let position = tap - channel * params.kernelSize;
  let kernelRow = position / params.kernelWidth;
  let row = vec4i(kernelRow) * params.dilation.y;
  let column = vec4i(position - kernelRow * params.kernelWidth) * params.dilation.x;
  return Taps(vec4i(channel * params.inSize) + row * params.inWidth + column, row, column);
}

fn under(taps: Taps, origin: i32, row0: i32, column0: i32, size: vec2u) -> vec4f {
  let row = row0 + taps.row;
  let column = column0 + taps.column;
  // A negative place becomes a huge unsigned one.
  let inside = (vec4u(row) < vec4u(size.y)) & (vec4u(column) < vec4u(size.x));
  // Outside, this reads something that isn't used; neighbours' places stay neighbours, which loads fast everywhere.
  let at = vec4u(origin + taps.offset);
  return select(vec4f(), vec4f(input[at.x], input[at.y], input[at.z], input[at.w]), inside);
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
  let tapCount = params.inChannels * params.kernelSize;
  let tapTiles = (tapCount + tile - 1u) / tile;
  let channelTiles = (params.outChannels + tile - 1u) / tile;
  let firstTap = (index % tapTiles) * tile;
  let firstChannel = ((index / tapTiles) % channelTiles) * tile;
  let group = (index / (tapTiles * channelTiles)) % params.groups;
  let slice = index / (tapTiles * channelTiles * params.groups);

  let low = taps(vec4u(firstTap) + vec4u(0u, 1u, 2u, 3u));
  let high = taps(vec4u(firstTap) + vec4u(4u, 5u, 6u, 7u));
  let lastChannel = vec4u(params.outChannels - 1u);
  let gradientLow = min(vec4u(firstChannel) + vec4u(0u, 1u, 2u, 3u), lastChannel) * params.outSize;
  let gradientHigh = min(vec4u(firstChannel) + vec4u(4u, 5u, 6u, 7u), lastChannel) * params.outSize;

  // A uniform costs a load wherever it stands, which a software adapter doesn't hoist.
  let outSize = params.outSize;
  let outWidth = params.outWidth;
  let stride = params.stride;
  let shift = params.shift;
  let inputExtent = vec2u(vec2i(params.inWidth, params.inHeight));
  let inWidth = params.inWidth;
  let groups = params.groups;
  let inImage = params.inChannels * params.inSize;
  let outImage = params.outChannels * outSize;

  var low0 = vec4f();
  var low1 = vec4f();
  var low2 = vec4f();
  var low3 = vec4f();
  var low4 = vec4f();
  var low5 = vec4f();
  var low6 = vec4f();
  var low7 = vec4f();
  var high0 = vec4f();
  var high1 = vec4f();
  var high2 = vec4f();
  var high3 = vec4f();
  var high4 = vec4f();
  var high5 = vec4f();
  var high6 = vec4f();
  var high7 = vec4f();
  let end = min(params.pixels, (slice + 1u) * params.pixelsPerSlice);
  for (var pixel = slice * params.pixelsPerSlice + lane; pixel < end; pixel += lanes) {
    let image = pixel / outSize;
    let place = pixel - image * outSize;
    let outRow = place / outWidth;
    let row0 = i32(outRow) * stride.y + shift.y;
    let column0 = i32(place - outRow * outWidth) * stride.x + shift.x;
    let imageGroup = image * groups + group;
    let origin = i32(imageGroup * inImage) + row0 * inWidth + column0;
    let inputLow = under(low, origin, row0, column0, inputExtent);
    let inputHigh = under(high, origin, row0, column0, inputExtent);
    let at = imageGroup * outImage + place;
    let gradient0 = outputGradient[at + gradientLow.x];
    let gradient1 = outputGradient[at + gradientLow.y];
    let gradient2 = outputGradient[at + gradientLow.z];
    let gradient3 = outputGradient[at + gradientLow.w];
    let gradient4 = outputGradient[at + gradientHigh.x];
    let gradient5 = outputGradient[at + gradientHigh.y];
    let gradient6 = outputGradient[at + gradientHigh.z];
    let gradient7 = outputGradient[at + gradientHigh.w];
    low0 += gradient0 * inputLow;
    low1 += gradient1 * inputLow;
    low2 += gradient2 * inputLow;
    low3 += gradient3 * inputLow;
    low4 += gradient4 * inputLow;
    low5 += gradient5 * inputLow;
    low6 += gradient6 * inputLow;
    low7 += gradient7 * inputLow;
    high0 += gradient0 * inputHigh;
    high1 += gradient1 * inputHigh;
    high2 += gradient2 * inputHigh;
    high3 += gradient3 * inputHigh;
    high4 += gradient4 * inputHigh;
    high5 += gradient5 * inputHigh;
    high6 += gradient6 * inputHigh;
    high7 += gradient7 * inputHigh;
  }

  let first = (slice * lanes + lane) * params.groups * params.outChannels * tapCount + firstTap;
  let out0 = first + (group * params.outChannels + firstChannel) * tapCount;
  // A loop, since a kernel compiles in half the time if the stores stand in it once.
  var sums = array(low0, high0, low1, high1, low2, high2, low3, high3, low4, high4, low5, high5, low6, high6, low7, high7);
  let channels = min(tile, params.outChannels - firstChannel);
  let count = min(tile, tapCount - firstTap);
  for (var channel = 0u; channel < channels; channel++) {
    for (var i = 0u; i < count; i++) {
      output[out0 + channel * tapCount + i] = sums[2u * channel + i / 4u][i % 4u];
    }
  }
}
