// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four random words that depend
// only on the key and the counter. Bit-identical with src/base/philox.ts.

struct Uniforms {
  key: vec2u,
  // The high words of the counter: a stream.
  stream: vec2u,
  // The index of the first element in the stream.
  first: u32,
  count: u32,
}
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

// The high word of a 32 by 32 bit product.
fn high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let middle = ah * bl + ((al * bl) >> 16u);
  let carried = (middle & 0xffffu) + al * bh;
  return ah * bh + (middle >> 16u) + (carried >> 16u);
}

fn philox(counter: vec4u, key: vec2u) -> vec4u {
  var c = counter;
  var k = key;
  for (var round = 0u; round < 10u; round++) {
    c = vec4u(
      high(0xcd9e8d57u, c.z) ^ c.y ^ k.x,
      0xcd9e8d57u * c.z,
      high(0xd2511f53u, c.x) ^ c.w ^ k.y,
      0xd2511f53u * c.x,
    );
    k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  }
  return c;
}

// Uniform in [0, 1), on a grid of 2^-24.
fn unit(word: u32) -> f32 {
  return f32(word >> 8u) * 5.9604644775390625e-8;
}

// Element i of a stream is word i % 4 of block i / 4, whatever the tensor's extent.
fn word(i: u32) -> u32 {
  return philox(vec4u(i >> 2u, 0u, u.stream), u.key)[i & 3u];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i < u.count) { out[i] = draw(u.first + i); }
}
