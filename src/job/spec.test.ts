import { describe, expect, it } from "vitest";
import { canonicalJson, manifestHash, parseManifest, sha256 } from "./manifest";
import { defaultSpec, type Manifest, modelNames, parseJobSpec } from "./spec";

const manifest: Manifest = { protocol: 1, job: "job-1", maker: "Ada", spec: defaultSpec("mlp"), elements: 109_184 };

describe("parseJobSpec", () => {
  it("takes the models' defaults as they are and fills in what is left out", () => {
    for (const model of modelNames) {
      expect(parseJobSpec(JSON.parse(JSON.stringify(defaultSpec(model))))).toEqual(defaultSpec(model));
      expect(parseJobSpec({ model })).toEqual(defaultSpec(model));
    }
    expect(parseJobSpec({ model: "mlp", optimizer: { name: "adam" } }).optimizer).toMatchObject({
      name: "adam",
      learningRate: 1e-3,
    });
  });

  const wrong: readonly [unknown, string][] = [
    [null, "A job is an object such as"],
    [[], "A job is an object such as"],
    [{ version: 2 }, "The job's version must be 1; it is 2."],
    [{ recipe: "imagenet" }, 'The job\'s recipe must be one of mnist; it is "imagenet".'],
    [{ model: "rnn" }, 'The job\'s model must be one of cnn, mlp; it is "rnn".'],
    [{ batch: 0 }, "The job's batch must be a whole number from 1 to 8192; it is 0."],
    [{ batch: 8193 }, "The job's batch must be a whole number from 1 to 8192; it is 8193."],
    [{ steps: 1.5 }, "The job's steps must be a whole number from 1 to 1000000; it is 1.5."],
    [{ seed: -1 }, "The job's seed must be a whole number from 0 to 4294967295; it is -1."],
    [{ seed: "1" }, 'The job\'s seed must be a whole number from 0 to 4294967295; it is "1".'],
    [{ validateEvery: -1 }, "The job's validateEvery must be a whole number from 0 to 1000000; it is -1."],
    [{ optimizer: { name: "sgd", momentum: -1 } }, "The optimizer sgd's momentum must be"],
    [{ epochs: 3 }, 'A job has no "epochs"; it has batch, model,'],
  ];
  for (const [json, sentence] of wrong)
    it(`refuses ${JSON.stringify(json)} with a sentence`, () => {
      expect(() => parseJobSpec(json)).toThrow(sentence);
    });
});

describe("the manifest", () => {
  it("survives the way through JSON", () => {
    expect(parseManifest(JSON.parse(JSON.stringify(manifest)))).toEqual(manifest);
  });

  it("refuses what could make a member allocate or believe too much", () => {
    expect(() => parseManifest({ ...manifest, elements: 2 ** 40 })).toThrow("elements must be");
    expect(() => parseManifest({ ...manifest, elements: 0 })).toThrow("elements must be");
    expect(() => parseManifest({ ...manifest, protocol: 2 })).toThrow("This job speaks protocol 2");
    expect(() => parseManifest({ ...manifest, maker: "x".repeat(65) })).toThrow("maker must be");
    expect(() => parseManifest({ ...manifest, job: "a b" })).toThrow("job must be");
    expect(() => parseManifest({ ...manifest, spec: null })).toThrow("A job is an object");
    expect(() => parseManifest({ ...manifest, more: 1 })).toThrow("has no more");
  });

  it("has a hash that depends on every value and not on their order", async () => {
    const reversed = Object.fromEntries(Object.entries(manifest).reverse());
    expect(await manifestHash(parseManifest(reversed))).toEqual(await manifestHash(manifest));
    const changed = { ...manifest, spec: { ...manifest.spec, seed: 2 } };
    expect(await manifestHash(changed)).not.toEqual(await manifestHash(manifest));
    expect(canonicalJson({ b: [1, { d: "x", c: null }], a: true })).toBe('{"a":true,"b":[1,{"c":null,"d":"x"}]}');
  });

  it("is hashed with SHA-256", async () => {
    expect(await sha256(new TextEncoder().encode("abc"))).toBe(
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });
});
