/** Where the tokens of one side lie along their axis, in CSS pixels. */
export interface Along {
  readonly starts: readonly number[];
  readonly sizes: readonly number[];
  readonly total: number;
}

/** Tokens one after the other, each as long as its text and at least `least`. */
export function along(sizes: readonly number[], least: number, gap: number): Along {
  const starts: number[] = [];
  let total = 0;
  const grown = sizes.map((size) => Math.max(size, least) + gap);
  for (const size of grown) {
    starts.push(total);
    total += size;
  }
  return { starts, sizes: grown, total };
}

/** The token at a place; null beyond the last. */
export function tokenAt({ starts, total }: Along, place: number): number | null {
  if (place < 0 || place >= total || starts.length === 0) return null;
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] as number) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function middleOf({ starts, sizes }: Along, index: number): number {
  return (starts[index] as number) + (sizes[index] as number) / 2;
}

/** A weight that has a line. */
export interface Line {
  readonly row: number;
  readonly key: number;
  readonly weight: number;
  /** Which of the heads that are shown together. */
  readonly head: number;
}

/** The weights of at least `threshold`, smallest first, and no more than the `most` largest. */
export function linesOf(
  heads: readonly { readonly columns: number; readonly values: Float32Array }[],
  threshold: number,
  most: number,
): { lines: Line[]; left: number } {
  const found: Line[] = [];
  heads.forEach(({ columns, values }, head) => {
    values.forEach((weight, at) => {
      if (weight > 0 && weight >= threshold) {
        found.push({ row: Math.floor(at / columns), key: at % columns, weight, head });
      }
    });
  });
  found.sort((a, b) => a.weight - b.weight);
  const left = Math.max(found.length - most, 0);
  return { lines: found.slice(left), left };
}
