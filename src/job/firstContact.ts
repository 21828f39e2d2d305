import type { Clock } from "../base/clock";
import { deferred } from "../base/deferred";
import type { Frame, Link } from "../transport/link";
import { decodeMessage, type MessageOf } from "./messages";
import { type Person, sendControl } from "./peers";

/** How long a first contact may take to tell what the job is. */
const welcomeTimeout = 8_000;

/**
 * Says hello on a first link and waits for what the peer tells of the job. The frames that come until then, the welcome
 * included, end up in `early`; later ones wait in the link.
 */
export async function firstWelcome(
  firstLink: Link,
  self: Person,
  clock: Clock,
  early: Frame[],
): Promise<MessageOf<"welcome">> {
  const welcome = deferred<MessageOf<"welcome">>();
  const timer = clock.setTimeout(
    () => welcome.reject(new Error(`The first contact didn't say within ${welcomeTimeout / 1000} s what the job is.`)),
    welcomeTimeout,
  );
  firstLink.onClose = (reason) => welcome.reject(new Error(reason));
  firstLink.onFrame = (frame) => {
    early.push(frame);
    if (frame.kind !== "control") return;
    try {
      const message = decodeMessage(frame.payload);
      if (message.kind !== "welcome") return;
      firstLink.onFrame = null;
      welcome.resolve(message);
    } catch (error) {
      welcome.reject(error instanceof Error ? error : new Error(String(error)));
    }
  };
  sendControl(firstLink, 0, { kind: "hello", name: self.name.slice(0, 64), gpu: self.gpu, member: false });
  try {
    return await welcome.promise;
  } finally {
    clock.clearTimeout(timer);
  }
}
