// Change one cell after the other, and make each step again: which of its cells change, and which say so?
function perturbed(name) {
  const picture = PICTURES[name];
  const [undeclared, pairs, moving] = [[], new Set(), new Set()];
  for (let turn = 0; turn < 24; turn++) {
    const state = beginning(picture);
    let k = 0;
    const drawnFrom = (c) => {
      const share = turn ? (0.31 * turn + 0.17 * k++) % 1 : 1;
      const value = c.min + share * (c.max - c.min);
      return c.step === 1 ? Math.round(value) : value;
    };
    const filled = (c, value) => (Array.isArray(value) ? value.map((v) => filled(c, v)) : drawnFrom(c));
    for (const c of picture.controls) {
      if (c.of) state[c.name] = c.of[turn % c.of.length];
      else if (!c.press) state[c.name] = filled(c, c.value);
    }
    const arrays = arraysOf(picture, state);
    const { sources } = linksOf(picture, arrays, state);
    for (const step of picture.steps) {
      const made = nameOf(step.makes);
      const results = cellsOf({ name: made, places: [] }, arrays);
      for (const result of results) for (const source of sources.get(result) ?? []) pairs.add(`${result} of ${source}`);
      for (const input of Object.keys(arrays).filter((other) => other !== made)) {
        for (const cell of cellsOf({ name: input, places: [] }, arrays)) {
          const before = numberAt(arrays, cell);
          const control = picture.controls.find((c) => c.name === input);
          const others = control?.of?.filter((option) => option !== before) ?? [before + 1, before - 0.6];
          for (const other of others) {
            const changed = structuredClone(arrays);
            write(changed, readTerm(cell), other);
            const after = { [made]: step.numbers(changed, state) };
            for (const result of results) {
              const [now, then] = [numberAt(after, result), numberAt(arrays, result)];
              if (now === then || Math.abs(now - then) < 1e-9) continue;
              moving.add(`${result} of ${cell}`);
              if (!sources.get(result)?.includes(cell)) undeclared.push(`${result} of ${cell}`);
            }
          }
        }
      }
    }
  }
  return { undeclared, idle: [...pairs].filter((pair) => !moving.has(pair)), count: pairs.size };
}
