// Is an angle between two gradients much? For a training, and for a check.

import { number, percent } from "./dom.js";

export const ROUNDING = 0.01; // degrees: less is rounding, in 32 bits

const degrees = (angle) => `${number(angle, 3)}°`;

// angle: between the right gradient and the wrong one; apart: between the right ones of two batches.
export function judged(angle, apart) {
  const ahead = Math.cos((angle * Math.PI) / 180);
  const between = typeof apart === "number" ? ` Two batches of 32 samples are ${degrees(apart)} apart in the same layer, so ${angle < apart ? "chance turns a single step more than the bug does" : "the bug turns a step more than chance does"}.` : "";
  const training = ahead <= 0
    ? `For the training, yes: such a step goes uphill.`
    : `For the training, ${angle < 10 ? "no" : angle < 45 ? "somewhat" : "yes"}: a step of the same length along a gradient turned by ${degrees(angle)} still goes ${percent(ahead)} as far downhill (its cosine).`;
  return `Is ${degrees(angle)} much? ${training}${between} For a check, yes: rounding turns a gradient by less than ${ROUNDING}°. And a bug is in every step, where the differences between batches average out.`;
}
