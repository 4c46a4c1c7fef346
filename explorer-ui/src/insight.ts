import type { Statistics } from "./door.ts";
import { type Matrix, hidden } from "./matrix.ts";
import { percent } from "./share.ts";

/** What can be said of one head in numbers, each a mean over the queries that look at something. */
export interface HeadNumbers {
  /** H(w_i) / log of how many keys the query may look at; 0 where it is one. */
  readonly normalized_entropy: number;
  readonly max_weight: number;
  readonly first_weight: number;
  readonly last_weight: number;
  /** Of a text that looks at itself; NaN elsewhere. */
  readonly distance: number;
  readonly self_weight: number;
  readonly previous_weight: number;
  readonly next_weight: number;
  /** The share of the attention that was not set aside. */
  readonly left: number;
  /** Queries that count. */
  readonly queries: number;
}

/** Of each place: how spread its attention is, and how much attention it receives. */
export interface Places {
  readonly entropy: Float32Array;
  /** Σ over the queries of w_ij, as a share of what an even head would give. */
  readonly received: Float32Array;
}

/** The share of all attention from which one of so many keys is a sink: max(1/4, min(4 / keys, 1)). */
function leastOfSink(keys: number): number {
  return Math.max(0.25, Math.min(4 / keys, 1));
}

/** The rule of `sinks`, in words. */
export function sinkRule(keys: number): string {
  return `Of ${keys} keys a sink is one with ${percent(leastOfSink(keys))} of all attention or more.`;
}

/** The keys that receive so much of the attention. */
export function sinks(matrix: Matrix): number[] {
  const { rows, columns, values } = matrix;
  const received = new Float64Array(columns);
  let total = 0;
  for (let i = 0; i < rows * columns; i++) {
    const weight = values[i] as number;
    if (Number.isNaN(weight)) continue;
    (received[i % columns] as number) += weight;
    total += weight;
  }
  const least = leastOfSink(columns) * total * (1 - 1e-6); // of float32 sums
  return total === 0 ? [] : [...received.keys()].filter((key) => (received[key] as number) >= least);
}

/**
 * The numbers of a head; `apart` are keys that are left out: what remains of a row is divided by its
 * sum. `offset` is by how many places the first row comes after the first key of the same text,
 * null where the two are different texts.
 */
export function headNumbers(
  matrix: Matrix,
  offset: number | null,
  apart: ReadonlySet<number> = new Set(),
): HeadNumbers {
  const sums = { entropy: 0, most: 0, first: 0, last: 0, distance: 0, self: 0, previous: 0, next: 0 };
  let [queries, left, looking] = [0, 0, 0];
  for (let i = 0; i < matrix.rows; i++) {
    const open: number[] = [];
    let [sum, whole] = [0, 0];
    for (let j = 0; j < matrix.columns; j++) {
      if (hidden(matrix, i, j)) continue;
      const weight = matrix.values[i * matrix.columns + j] as number;
      whole += weight;
      if (apart.has(j)) continue;
      open.push(j);
      sum += weight;
    }
    if (whole <= 0) continue;
    looking += 1;
    left += sum / whole;
    if (sum <= 1e-6 || open.length === 0) continue;
    queries += 1;
    const own = offset === null ? NaN : i + offset;
    let [entropy, most, distance] = [0, 0, 0];
    const share = (j: number) =>
      open.includes(j) ? (matrix.values[i * matrix.columns + j] as number) / sum : 0;
    for (const j of open) {
      const weight = (matrix.values[i * matrix.columns + j] as number) / sum;
      if (weight > 0) entropy -= weight * Math.log(weight);
      most = Math.max(most, weight);
      distance += weight * Math.abs(own - j);
    }
    sums.entropy += open.length > 1 ? entropy / Math.log(open.length) : 0;
    sums.most += most;
    sums.first += share(open[0] ?? -1);
    sums.last += share(open.at(-1) ?? -1);
    sums.distance += distance;
    if (offset !== null) {
      sums.self += share(own);
      sums.previous += share(own - 1);
      sums.next += share(own + 1);
    }
  }
  const mean = (sum: number) => (queries === 0 ? NaN : sum / queries);
  const within = (sum: number) => (offset === null ? NaN : mean(sum));
  return {
    normalized_entropy: mean(sums.entropy),
    max_weight: mean(sums.most),
    first_weight: mean(sums.first),
    last_weight: mean(sums.last),
    distance: within(sums.distance),
    self_weight: within(sums.self),
    previous_weight: within(sums.previous),
    next_weight: within(sums.next),
    left: looking === 0 ? NaN : left / looking,
    queries,
  };
}

export function places(matrix: Matrix, apart: ReadonlySet<number> = new Set()): Places {
  const { rows, columns, values } = matrix;
  const entropy = new Float32Array(rows);
  const received = new Float32Array(columns);
  for (let i = 0; i < rows; i++) {
    let [sum, open] = [0, 0];
    for (let j = 0; j < columns; j++) {
      const weight = values[i * columns + j] as number;
      if (Number.isNaN(weight) || apart.has(j)) continue;
      sum += weight;
      open += 1;
    }
    for (let j = 0; j < columns && sum > 1e-6; j++) {
      const weight = (values[i * columns + j] as number) / sum;
      if (Number.isNaN(weight) || apart.has(j)) continue;
      if (weight > 0) (entropy[i] as number) -= weight * Math.log(weight);
      (received[j] as number) += weight;
    }
    if (open > 1) (entropy[i] as number) /= Math.log(open);
  }
  return { entropy, received };
}

/** How far two heads are apart, row by row. */
export interface Difference {
  /** Mean over the rows of ½ Σ |a − b|: the share of attention that would have to move. */
  readonly moved: number;
  /** Pearson's correlation of all weights that both may have; NaN where one of them is constant. */
  readonly correlation: number;
  /** a − b; NaN where neither may look. */
  readonly matrix: Matrix;
}

export function difference(a: Matrix, b: Matrix): Difference {
  const values = new Float32Array(a.values.length);
  let [moved, looking, count] = [0, 0, 0];
  let [sumA, sumB, squareA, squareB, product] = [0, 0, 0, 0, 0];
  for (let i = 0; i < a.rows; i++) {
    let [apart, open] = [0, 0];
    for (let j = 0; j < a.columns; j++) {
      const at = i * a.columns + j;
      const [one, other] = [a.values[at] as number, b.values[at] as number];
      if (Number.isNaN(one) && Number.isNaN(other)) {
        values[at] = NaN;
        continue;
      }
      const [x, y] = [Number.isNaN(one) ? 0 : one, Number.isNaN(other) ? 0 : other];
      values[at] = x - y;
      apart += Math.abs(x - y);
      open += 1;
      count += 1;
      sumA += x;
      sumB += y;
      squareA += x * x;
      squareB += y * y;
      product += x * y;
    }
    if (open === 0) continue;
    moved += apart / 2;
    looking += 1;
  }
  const spread = (square: number, sum: number) => square - (sum * sum) / count;
  const together = Math.sqrt(spread(squareA, sumA) * spread(squareB, sumB));
  return {
    moved: looking === 0 ? NaN : moved / looking,
    correlation: together > 1e-12 ? (product - (sumA * sumB) / count) / together : NaN,
    matrix: { rows: a.rows, columns: a.columns, values },
  };
}

/** Two or three sentences about a head, from its numbers alone. */
export function interpretation(numbers: HeadNumbers, name: string, apart: boolean): string[] {
  const { normalized_entropy: entropy, max_weight: most, queries } = numbers;
  if (queries === 0 || Number.isNaN(entropy)) {
    return [`${name} has no query that looks at anything${apart ? " that is not set aside" : ""}.`];
  }
  const kind = entropy < 0.35 ? "sharp" : entropy > 0.8 ? "diffuse" : "neither sharp nor diffuse";
  const sentences = [
    `${name} is ${kind}: its largest weight is ${percent(most)} on average, its entropy ${percent(entropy)} of the most.`,
  ];
  const roles: [number, string][] = [
    [numbers.previous_weight, "the token before"],
    [numbers.next_weight, "the token after"],
    [numbers.self_weight, "the token itself"],
    [numbers.first_weight, "the first token"],
    [numbers.last_weight, "the last token"],
  ];
  const [share, role] = roles
    .filter(([value]) => Number.isFinite(value))
    .reduce((best, one) => (one[0] > best[0] ? one : best), [0, ""]);
  if (share >= 0.3) sentences.push(`It looks mostly at ${role}: ${percent(share)} of its attention.`);
  else if (Number.isFinite(numbers.distance)) {
    sentences.push(`It looks ${numbers.distance.toFixed(1)} tokens away on average, at no one place first of all.`);
  } else sentences.push("It looks at no one place first of all.");
  if (apart) sentences.push(`Set aside were ${percent(1 - numbers.left)} of its attention.`);
  return sentences;
}

export const NUMBERS = [
  "normalized_entropy",
  "max_weight",
  "first_weight",
  "last_weight",
  "self_weight",
  "previous_weight",
  "next_weight",
  "distance",
] as const satisfies readonly (keyof HeadNumbers)[];

/**
 * The same of a map of which a part is in view, or which is too long: from the numbers that came of all of
 * it, of which there are none of the mean of all heads (null).
 */
export function interpretationOfWhole(
  head: number | null,
  { layers, sampled }: Statistics,
  layer: number,
  part: boolean,
): string[] {
  const known = NUMBERS.map((name) => [name, layers[layer]?.[name]?.[head ?? -1] ?? NaN] as const);
  const numbers = { ...Object.fromEntries(known), left: 1, queries: 1 } as unknown as HeadNumbers;
  return [
    ...(Number.isNaN(numbers.max_weight) ? [] : interpretation(numbers, `Head ${head}`, false)),
    `${part ? "A part of the map is in view" : "The map is too long to be read here"}; numbers here are of ${sampled ? "a sample of its queries" : "all of it"}.`,
  ];
}
