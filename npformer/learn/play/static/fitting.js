// Does a model learn, or memorize? What its losses say, in words.

import { number } from "./dom.js";

const RISE = 1.15; // of the least validation loss: less is noise
const FALL = 0.9; // of the training loss meanwhile
const LATELY = 3; // epochs: a single one may be an accident

// The epoch with the least validation loss.
export const lowest = (points) => points.reduce((best, point) => (typeof point.validation_loss === "number" && !(best?.validation_loss <= point.validation_loss) ? point : best), null);

// A sentence, and whether it tells of overfitting; null before there are two epochs.
export function fitting(points) {
  const epochs = points.filter((point) => typeof point.validation_loss === "number");
  if (epochs.length < 2) return null;
  const [best, last] = [lowest(epochs), epochs.at(-1)];
  const trained = epochs.filter((point) => typeof point.train_loss === "number");
  const [before, after] = [trained.findLast(({ step }) => step <= best.step) ?? trained[0], trained.at(-1)];
  const least = `Least validation loss: ${number(best.validation_loss, 3)}, after epoch ${best.epoch}`;
  const rises = last.epoch >= best.epoch + LATELY && epochs.slice(-LATELY).every((point) => point.validation_loss > RISE * best.validation_loss);
  const falls = before && after.train_loss < FALL * before.train_loss;
  if (!rises || !falls) return { over: false, words: `${least}.` };
  return { over: true, words: `Overfitting. ${least}; since then it rose to ${number(last.validation_loss, 3)}, while that on training samples fell from ${number(before.train_loss, 3)} to ${number(after.train_loss, 3)}. The model begins to memorize its samples.` };
}
