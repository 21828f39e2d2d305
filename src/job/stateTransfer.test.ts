import { describe, expect, it } from "vitest";
import { adam, type OptimizerSpec, sgd } from "../optim/spec";
import type { Offer } from "./messages";
import { defaultSpec, type Manifest } from "./spec";
import { IncomingTransfer, packTransfer, type TransferContents } from "./stateTransfer";

const manifest = (optimizer: OptimizerSpec = adam()): Manifest => ({
  protocol: 1,
  job: "job",
  maker: "Ada",
  spec: { ...defaultSpec("mlp"), optimizer, steps: 10 },
  elements: 5,
});
const contents: TransferContents = {
  what: "training",
  committed: 3,
  optimizerSteps: 2,
  skips: 1,
  elapsedMilliseconds: 1234.5,
  lossesFrom: 0,
  losses: [2.5, Number.NaN, 1.25],
  validations: [{ step: 2, loss: 1.5, accuracy: 0.75 }],
  arrays: [1, 2, 3].map((value) => new Float32Array(5).fill(value)),
};

function offerOf(packed: ReturnType<typeof packTransfer>): Offer {
  return { kind: "offer", epoch: 4, hash: "0".repeat(64), ...packed.offer };
}

describe("a state transfer", () => {
  it("comes through bit by bit, in whatever pieces", () => {
    const packed = packTransfer(contents);
    for (const piece of [1, 7, 60, 1000]) {
      const incoming = new IncomingTransfer(offerOf(packed), manifest());
      for (let offset = 0; offset < packed.bytes.length; offset += piece) {
        expect(incoming.complete).toBe(false);
        const payload = packed.bytes.slice(offset, offset + piece);
        expect(incoming.receive({ kind: "state", epoch: 4, step: 3, channel: 0, offset, payload })).toBeNull();
      }
      expect(incoming.complete).toBe(true);
      expect(incoming.bytes).toEqual(packed.bytes);
      const { losses, arrays, validations, optimizerSteps, skips } = incoming.contents();
      expect([...Array.from(losses)]).toEqual(contents.losses);
      expect({ arrays, validations, optimizerSteps, skips }).toEqual({
        arrays: contents.arrays,
        validations: contents.validations,
        optimizerSteps: 2,
        skips: 1,
      });
    }
  });

  it("isn't begun when its size isn't what the manifest says", () => {
    const offer = offerOf(packTransfer(contents));
    const wrong: readonly [Partial<Offer>, Manifest][] = [
      [{ bytes: offer.bytes + 4 }, manifest()],
      [{ bytes: 2 ** 40 }, manifest()],
      [{ losses: 11, bytes: offer.bytes + 64 }, manifest()],
      [{ lossesFrom: 8 }, manifest()],
      [{ committed: 11 }, manifest()],
      // SGD without momentum has no state, Adam has two arrays.
      [{}, manifest(sgd())],
      [{}, { ...manifest(), elements: 6 }],
    ];
    for (const [change, under] of wrong)
      expect(() => new IncomingTransfer({ ...offer, ...change }, under)).toThrow(
        "A transfer of the training's training",
      );
  });

  it("takes no piece out of turn or beyond its end", () => {
    const incoming = new IncomingTransfer(offerOf(packTransfer(contents)), manifest());
    const frame = { kind: "state", epoch: 4, step: 3, channel: 0 } as const;
    expect(incoming.receive({ ...frame, offset: 4, payload: new Uint8Array(4) })).toContain("at 4; expected");
    expect(incoming.receive({ ...frame, offset: 0, payload: new Uint8Array(1000) })).toContain("1000 bytes at 0");
  });
});
