import type { Explained, MechanismQuestion } from "./door.ts";
import type { State } from "./state.ts";

type Asked = Pick<State, "answer" | "sheet" | "layer" | "head" | "pinned" | "pointed" | "unplaced">;

/**
 * The row of what is on screen whose numbers are asked for: the pinned one, otherwise the one that
 * was pointed at last. Null where several heads are shown as one, or no rows are.
 */
export function question({ answer, sheet, layer, head, pinned, pointed, unplaced }: Asked): MechanismQuestion | null {
  const described = answer?.layers[layer];
  if (!sheet || sheet.coarse || sheet.layer !== layer || !described) return null;
  const own = described.heads === 1 ? 0 : (sheet.head ?? head);
  if (own === null) return null;
  const { rows, keys } = sheet.excerpt;
  const place = pinned ?? pointed;
  const target = place?.side !== "source";
  const row = (target ? place?.index : place.partner) ?? 0;
  const key = !pinned ? undefined : target ? place?.partner : place.index;
  return { layer, head: own, row: row + rows.from, key: key === undefined ? null : key + keys.from, ...(unplaced && { unplaced }) };
}

export const MODEL = 40; // the place of the slider at which the scores are the model's
export const PLACES = 80;

/** What the scores are multiplied by: 2^(place / 10), from 1/16 to 16. */
export function factorAt(place: number): number {
  return 2 ** ((place - MODEL) / 10);
}

/** The place of the slider that is nearest to a factor. */
export function placeAt(factor: number): number {
  return Math.min(Math.max(Math.round(MODEL + 10 * Math.log2(factor)), 0), PLACES);
}

/** The numbers of a key, as they are with the factor and with or without the mask. */
export interface Line {
  readonly key: number;
  readonly product: number | null;
  readonly bias: number | null;
  readonly score: number | null;
  readonly weight: number;
  /** Why the key is hidden; "" where it is seen. */
  readonly hidden: string;
}

export interface Computed {
  /** All keys that were sent, in the order of the text. */
  readonly lines: readonly Line[];
  /** H(w) in nats, and the most that it can be, log n of the n keys that are looked at. */
  readonly entropy: number;
  readonly most: number;
  /** log Σ e^score over them. */
  readonly sum: number;
}

/** softmax(cap(factor · scale · product) + bias), over the keys that are seen, or over all. */
export function computed(found: Explained, factor: number, masked: boolean): Computed {
  const { keys, softcap, scale, left } = found;
  const scores = keys.score.map((own, index) => {
    if (factor === 1) return own;
    const product = keys.product[index];
    if (product == null) return null;
    const scaled = product * scale * factor;
    return (softcap === null ? scaled : softcap * Math.tanh(scaled / softcap)) + (keys.bias?.[index] ?? 0);
  });
  const counts = (index: number) => (!masked || keys.hidden[index] === "") && scores[index] != null;
  const rest = factor === 1 && left.log_sum !== null ? [left.log_sum] : [];
  const open = [...scores.filter((score, index) => score !== null && counts(index)) as number[], ...rest];
  const top = open.reduce((most, score) => Math.max(most, score), -Infinity);
  const total = open.reduce((sum, score) => sum + Math.exp(score - top), 0);
  let [entropy, looked] = [0, 0];
  const lines = scores.map((score, index): Line => {
    const weight = score !== null && counts(index) ? Math.exp(score - top) / total : 0;
    looked += counts(index) ? 1 : 0;
    if (weight > 0) entropy -= weight * Math.log(weight);
    const hidden = masked ? (keys.hidden[index] as string) : "";
    const [key = 0, product = null, bias = null] = [keys.index[index], keys.product[index], keys.bias?.[index]];
    return { key, product, bias, score, weight, hidden };
  });
  return { lines, entropy, most: Math.log(Math.max(looked, 1)), sum: top + Math.log(total) };
}

/** How many keys have no line in the table: those that are seen, and those that are hidden. */
export function leftOut({ keys, shown, left }: Explained): { seen: number; hidden: number } {
  const listed = new Set(shown);
  const more = keys.index.flatMap((key, index) => (listed.has(key) ? [] : [keys.hidden[index] === ""]));
  const seen = more.filter((one) => one).length;
  return { seen: left.seen + seen, hidden: left.hidden + more.length - seen };
}

/** What a key adds to its score, number by number: q ⊙ k, or v ⊙ tanh(q + k). */
export function products({ query, energy }: Explained, key: readonly (number | null)[]): number[] {
  return query.map((own, index) => {
    const other = key[index] ?? 0;
    return !energy ? (own ?? 0) * other : (energy[index] ?? 0) * Math.tanh((own ?? 0) + other);
  });
}

/** A number in a table: "−1.25", "0.003", "−3.4e38". */
export function plain(value: number | null): string {
  if (value === null) return "–";
  const size = Math.abs(value);
  const text = size >= 1e5 ? value.toExponential(1).replace("+", "") : value.toFixed(size >= 100 ? 1 : size >= 0.1 || size === 0 ? 2 : 3);
  return text.replace("-", "−");
}

/** A factor, as short as three digits say it: "0.354", "1.41", "8". */
export function times(factor: number): string {
  return String(Number(factor.toPrecision(3)));
}

/** Whether a scale is 1 / √width, as nearly as float32 says. */
export function isRoot(scale: number, width: number): boolean {
  return Math.abs(scale * Math.sqrt(width) - 1) < 1e-4;
}

const NAMES = {
  scaled: ["Scaled dot product", "q · k"],
  dot: ["Luong’s dot", "q · k"],
  general: ["Luong’s general", "q · W k"],
  additive: ["Additive", "v · tanh(W q + U k)"],
  concat: ["Luong’s concat", "v · tanh(W₁ q + W₂ k)"],
} as const;

/** The name of a score, and its formula. */
export function scoreNames({ form }: Explained): readonly [string, string] {
  return NAMES[form];
}

/** The score in symbols. */
export function formula(found: Explained): string {
  const [, product] = scoreNames(found);
  const scaled = found.scale === 1 ? product : `${times(found.scale)} × ${product}`;
  const capped = found.softcap === null ? scaled : `${times(found.softcap)} × tanh(${scaled} / ${times(found.softcap)})`;
  return `score = ${capped}${!found.keys.bias ? "" : " + bias"}`;
}
