// Gathers a convolution: every output value sums the input values that its window covers. The same kernel computes the
// convolution (scale = stride, divide = 1) and its transpose, which is the gradient of the input (scale = 1,
// divide = stride): the input row of window row k at output row o is (o * scale + shift + k * step) / divide, where
// that is whole and inside.
//
// A workgroup takes 512 output pixels, counted over all images, and 8 output channels of one group. Each invocation
// keeps 8 pixels (64 apart, so that neighbours read neighbours) by 8 channels in registers. What a window position needs
// of bounds and addresses is computed once, outside the loop over channels. Window rows and columns share one loop,
// since leaving a loop costs a software adapter more than what stands in it.

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
  let bounded = min(pixel, vec4u(u.pixels - 1u));
  let image = bounded / u.outSize;
  let place = bounded - image * u.outSize;
  let outRow = place / u.outWidth;
  let outColumn = place - outRow * u.outWidth;
  let row = vec4i(outRow) * u.scale.y + u.shift.y;
  let column = vec4i(outColumn) * u.scale.x + u.shift.x;
  return Pixels(pixel < vec4u(u.pixels), image, place, row, column);
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
  if (index >= u.workgroups) {
    return;
  }
  let channelTiles = (u.outChannels + channelsPerTile - 1u) / channelsPerTile;
  let channel = (index % channelTiles) * channelsPerTile;
  let group = (index / channelTiles) % u.groups;
  let pixelTile = index / (channelTiles * u.groups);
  let near = pixelsFrom(pixelTile * 8u * lanes + lane);
  let far = pixelsFrom(pixelTile * 8u * lanes + 4u * lanes + lane);
  let nearInput = vec4i((near.image * u.groups + group) * u.inChannels * u.inSize);
  let farInput = vec4i((far.image * u.groups + group) * u.inChannels * u.inSize);

  let lastChannel = vec4u(u.outChannels - 1u);
  let weight0 = group * u.weightGroupStride;
  let low = weight0 + min(vec4u(channel) + vec4u(0u, 1u, 2u, 3u), lastChannel) * u.weightOutStride;
  let high = weight0 + min(vec4u(channel) + vec4u(4u, 5u, 6u, 7u), lastChannel) * u.weightOutStride;

  // A uniform costs a load wherever it stands, which a software adapter doesn't hoist.
  let taps = u32(u.kernelHeight * u.kernelWidth);
  let kernelWidth = u.kernelWidth;
  let inHeight = vec4u(u32(u.inHeight));
  let inWidth = u.inWidth;
  let inSize = u.inSize;
  let inChannels = u.inChannels;
  let weightInStride = u.weightInStride;
  let step = u.step;
  let divide = u.divide;
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
  let groupChannel = group * u.outChannels;
  let nearOut = (near.image * u.groups + group) * u.outChannels * u.outSize + near.place;
  let farOut = (far.image * u.groups + group) * u.outChannels * u.outSize + far.place;
  let end = min(channel + channelsPerTile, u.outChannels);
  for (var c = channel; c < end; c++) {
    store_four(groupChannel + c, nearOut + c * u.outSize, near.exists, nearSums[c - channel]);
    store_four(groupChannel + c, farOut + c * u.outSize, far.exists, farSums[c - channel]);
  }
}

fn store_four(channel: u32, at: vec4u, writes: vec4<bool>, sum: vec4f) {
  var value = sum;
  if (u.hasBias != 0u) {
    value += bias[channel];
  }
  if (writes.x) {
    store(at.x, value.x);
  }
  if (writes.y) {
    store(at.y, value.y);
  }
  if (writes.z) {
    store(at.z, value.z);
  }
  if (writes.w) {
    store(at.w, value.w);
  }
}
