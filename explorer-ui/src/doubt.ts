import type { Adversary, Answer, DoubtQuestion, Effect, Effects } from "./door.ts";
import type { Span } from "./excerpt.ts";
import { isolated, labels } from "./label.ts";
import { exact, percent } from "./share.ts";
import type { State } from "./state.ts";

type Asked = Pick<State, "answer" | "sheet" | "layer" | "head" | "pinned" | "output" | "weight" | "erased">;

/**
 * What is asked of what is on screen. The row is the one that is pinned, otherwise the query of the
 * output; the output is the chosen one, otherwise that of the pinned row; the key is the one that is
 * pinned, otherwise (null) the one of the greatest weight.
 */
export function question(state: Asked, words: readonly Span[] | null = null): DoubtQuestion | null {
  const { answer, sheet, layer, head, pinned, output, weight, erased } = state;
  const [doubt, described] = [answer?.doubt, answer?.layers[layer]];
  if (!doubt || !described || answer?.map == null) return null;
  const place = !sheet || sheet.coarse || sheet.layer !== layer ? null : pinned;
  const target = place?.side === "target";
  const rowAt = target ? place.index : place?.partner;
  const keyAt = !place ? undefined : target ? place.partner : place.index;
  const own = rowAt === undefined || !sheet ? null : rowAt + sheet.excerpt.rows.from;
  const key = keyAt === undefined || !sheet ? null : keyAt + sheet.excerpt.keys.from;
  const rows = doubt.rows[layer] ?? false;
  const chosen = output !== null && output < doubt.outputs.length ? output : null;
  const which = chosen ?? (rows && own !== null ? own : doubt.first);
  const row = own ?? (rows ? which : 0);
  const shown = sheet?.layer === layer ? (sheet.head ?? head) : head;
  return {
    layer,
    head: described.heads === 1 ? 0 : shown,
    output: which,
    row,
    key,
    weight: weight === null ? null : weight / 100,
    erased: erased !== null ? single(erased, doubt.source.length) : word(answer, layer, key, words, sheet?.excerpt.keys.from ?? 0),
  };
}

function single(place: number, size: number): Span | null {
  return place < size ? { from: place, to: place + 1 } : null;
}

/** The pieces of the word in which a key is; null where pieces stand alone. */
function word(answer: Answer, layer: number, key: number | null, words: readonly Span[] | null, from: number): Span | null {
  if (key === null || !words || answer.doubt?.keys[layer] !== true) return null;
  const found = words.find((span) => key - from >= span.from && key - from < span.to);
  return !found ? null : { from: found.from + from, to: found.to + from };
}

/** What of a question decides about other weights of the same output. */
export function adversaryKey(map: string, { layer, head, output, row }: DoubtQuestion): string {
  return [map, layer, head, output, row].join(" ");
}

/** A change of the logarithm of a probability, or its gradient: "−0.31". */
export function signed(value: number | null | undefined): string {
  if (value === null || value === undefined) return "−∞";
  const size = Math.abs(value);
  const digits = size >= 9.995 ? size.toFixed(1) : size.toFixed(2);
  if (Number(digits) === 0) return "0.00";
  return `${value < 0 ? "−" : "+"}${digits}`;
}

/** What was done, in the first column of the table. */
export function changeName({ name }: Effect, effects: Effects, asked: DoubtQuestion, { doubt }: Answer, names: Names): string {
  if (name === "permuted") return `permuted, ${effects.draws} draws`;
  if (name === "weight") {
    return `“${isolated(names.key(effects.key))}” ${exact(effects.weights[effects.key] ?? 0)} → ${percent(asked.weight ?? 0)}`;
  }
  if (name !== "erased") return name === "adversary" ? "other weights" : name;
  const [from, to] = effects.erased ?? [0, 0];
  return `without “${isolated(plain((doubt?.source.slice(from, to) ?? []).join("")))}”`;
}

/** A token as the map names it, without the marks of its vocabulary, where something is left. */
export function plain(token: string): string {
  return labels([token], 1)[0]?.text.replace(/[▁Ġ]/g, " ").trim() || token;
}

export interface Names {
  row(index: number): string;
  key(index: number): string;
}

/** What a search for other weights found, in words. */
export function found({ divergence, at_most, distance, whole }: Adversary): string {
  const share = at_most > 0 ? Math.round((100 * divergence) / at_most) : 0;
  return (
    `${whole ? "All rows of the head look" : "This row looks"} elsewhere: ${divergence.toFixed(2)} nats of at most ` +
    `${at_most.toFixed(2)} (${share} %, Jensen–Shannon). The output moves by ${exact(distance)} of probability at the most.`
  );
}

/** A line of the bars: a key, its weight, and the gradient. */
export interface Line {
  readonly key: number;
  readonly weight: number;
  readonly gradient: number | null;
}

const MOST_LINES = 40;

/** The keys of a row that the query sees, in the order of the text; of many, those that matter most. */
export function lines({ weights, seen, gradient }: Effects): { shown: Line[]; left: number } {
  const all = weights.flatMap((weight, key) =>
    seen[key] === true ? [{ key, weight, gradient: gradient?.[key] ?? null }] : [],
  );
  const most = Math.max(...all.map(({ gradient }) => Math.abs(gradient ?? 0)), 1e-12);
  const size = (line: Line) => Math.max(line.weight, Math.abs(line.gradient ?? 0) / most);
  const shown = [...all].sort((a, b) => size(b) - size(a)).slice(0, MOST_LINES);
  return { shown: shown.sort((a, b) => a.key - b.key), left: all.length - shown.length };
}
