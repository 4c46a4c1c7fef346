import type { Answer, Facts, Layer } from "./door.ts";
import { type Excerpt, type Span, cells, length } from "./excerpt.ts";
import { isolated } from "./label.ts";
import { top } from "./matrix.ts";
import { percent } from "./share.ts";
import type { Place, State } from "./state.ts";
import type { Tile } from "./tile.ts";

/** The facts about a model as short phrases; what is not known is not said. */
export function phrases(facts: Facts): string[] {
  const said: string[] = [];
  if (facts.name) said.push(facts.name);
  if (facts.source_language && facts.target_language) {
    said.push(`${language(facts.source_language)} → ${language(facts.target_language)}`);
  }
  if (facts.attention === "none") said.push("no attention");
  else if (facts.attention) said.push(`${facts.attention} attention`);
  if (typeof facts.parameters === "number") said.push(`${amount(facts.parameters)} parameters`);
  if (typeof facts.bleu === "number") said.push(`validation BLEU ${facts.bleu.toFixed(1)}`);
  return said;
}

/** How the BLEU was measured: a score does not travel alone. */
export function signature(facts: Facts): string {
  if (typeof facts.bleu !== "number") return "";
  const sentences = facts.bleu_sentences ? ` on ${facts.bleu_sentences} sentences` : "";
  return `BLEU${sentences}: ${facts.bleu_signature ?? "signature unknown"}`;
}

/** What is said in place of a map. */
export function absence(answer: Answer): string {
  return answer.map === null && answer.blank !== ""
    ? `There is no looking to show: ${answer.blank}.`
    : "";
}

/** "de" → "German"; what is no language code stays as it is. */
export function language(code: string): string {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** 3,141,592 → "3.1 million". */
export function amount(count: number): string {
  if (count >= 999.5e6) return `${(count / 1e9).toFixed(1)} billion`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} million`;
  return count.toLocaleString("en");
}

/** What a screen reader says of a word: what it looked at most, or what looked at it most. */
export function summary(place: Place, word: string, weights: readonly number[], across: string[]) {
  const most = top(weights, 3)
    .filter((index) => (weights[index] as number) >= 0.005)
    .map((index) => `${isolated(across[index] as string)} ${percent(weights[index] as number)}`);
  const verb = place.side === "target" ? "looked at" : "was looked at by";
  return `${isolated(word)}: ${verb} ${most.length > 0 ? most.join(", ") : "nothing in particular"}`;
}

/** What is looked at, and by whom: in a translation words, elsewhere tokens. */
export interface Kind {
  readonly translated: boolean;
  readonly within: boolean;
}

/** The names of the two axes: what is looked at, and what looks. */
export function sides({ translated, within }: Kind): { source: string; target: string } {
  if (within) return { source: "Looked at", target: "Looking" };
  return { source: "Source", target: translated ? "Translation" : "Target" };
}

const STATISTICS: Readonly<Record<string, string>> = {
  normalized_entropy: "normalized entropy",
  max_weight: "largest weight",
  first_weight: "share on the first token",
  last_weight: "share on the last token",
  distance: "distance in tokens",
  self_weight: "share on the token itself",
  previous_weight: "share on the token before",
  next_weight: "share on the token after",
  special_weight: "share on special tokens",
  information: "mutual information (nats)",
  diagonal: "monotonicity (ρ)",
};

const TASKS = {
  read: ["Read", "Reading", "", "Your text"],
  continue: ["Continue", "Writing", "Continuation", "Your prompt"],
  answer: ["Answer", "Answering", "Answer", "Your text"],
  classify: ["Classify", "Reading", "Label", "Your text"],
  translate: ["Translate", "Translating", "Translation", "Your sentence"],
} as const;

/** What a model does with a text: on the button, meanwhile, and over what comes. */
export function taskWords(task: Facts["task"]): { button: string; doing: string; result: string; field: string } {
  const [button, doing, result, field] = TASKS[task ?? "translate"];
  return { button, doing, result, field };
}

/** A part of a map: "rows 0–11 × keys 3–9". */
export function partName({ rows, keys }: Excerpt): string {
  const places = ({ from, to }: Span) =>
    to - from === 1 ? from.toLocaleString("en") : `${from.toLocaleString("en")}–${(to - 1).toLocaleString("en")}`;
  return `rows ${places(rows)} × keys ${places(keys)}`;
}

/** A statistic of a head, in words. */
export function statisticName(name: string): string {
  return STATISTICS[name] ?? name;
}

const SHORT: Readonly<Record<string, string>> = {
  normalized_entropy: "entropy",
  max_weight: "largest",
  first_weight: "first",
  last_weight: "last",
  self_weight: "itself",
  previous_weight: "before",
  next_weight: "after",
};

/** A statistic of a head, at the top of a narrow column. */
export function statisticShort(name: string): string {
  return SHORT[name] ?? name;
}

export function statisticValue(name: string, value: number): string {
  return /_weight$|^normalized/.test(name) ? percent(value) : value.toFixed(2).replace("-", "−");
}

/** A head among all: "encoder 3 · self, head 5"; both are counted from 0. */
export function headName({ title }: Layer, head: number | null): string {
  return `${title}, ${head === null ? "mean of all heads" : `head ${head}`}`;
}

/** The heading over the numbers. */
export function title(place: Place, words: readonly string[], kind: Kind): string {
  const named = words.map((word) => `“${isolated(word)}”`).join(", ");
  return place.side === "target" ? `Where ${named} looked` : `Which ${one(kind)}s looked at ${named}`;
}

/** What the numbers add up to, which is not the same in both directions. */
export function note(place: Place, kind: Kind, weights: readonly number[]): string {
  if (place.side === "target") {
    const key = kind.within ? "token" : "source token";
    const sum = percent(weights.reduce((total, weight) => total + weight, 0));
    const whose = place.also?.length ? `the mean attention of these ${one(kind)}s` : `this ${one(kind)}’s attention`;
    return `Of each ${key} here, the share of ${whose}; together ${sum}.`;
  }
  const query = kind.translated && !kind.within ? "word of the translation" : "token";
  return `Of each ${query} here, the share of its own attention that went to ${place.also?.length ? "these together" : "this one"}.`;
}

/** What can be done with the map in view. */
export function hint(coarse: Excerpt | null, preview: Tile | null = null): string {
  if (!coarse) return "";
  const [rows, keys] = preview ? [preview.rows, preview.keys] : [cells(coarse.rows), cells(coarse.keys)];
  const size = (span: Span, count: number) => Math.ceil(length(span) / count).toLocaleString("en");
  if (preview?.sampled) {
    const [all, some] = [size(coarse.rows, rows), size(coarse.keys, keys)];
    return `A sample: of ${all} tokens that look, each cell shows one, and its largest weight of up to ${some}.`;
  }
  return (
    `Each cell shows the largest weight of up to ${size(coarse.rows, rows)} × ${size(coarse.keys, keys)}. ` +
    "Click a cell to see its part of the map closer."
  );
}

/** What is said while nothing new is there yet. */
export function progress({ translating, reading, slow, share, model }: State): string {
  if (translating !== null) {
    const { doing } = taskWords(model?.facts.task);
    return slow ? `Still ${doing.toLowerCase()}. A long text or a large model takes its time…` : `${doing}…`;
  }
  if (!reading || !slow) return "";
  return share === null ? "Reading the weights. A long map takes its time…" : `Reading the weights: ${percent(share)}`;
}

/** A text of a trace, in the list of all of them: its row, counted from 0, and how it begins. */
export function listed(row: number, text: string): string {
  return text === "" ? String(row) : `${row}: ${text}`;
}

/** What a map is, for those who do not see it. */
export function spoken(rows: number, columns: number, kind: Kind, coarse: boolean): string {
  const { source, target } = sides(kind);
  const size = `${rows} rows (${target.toLowerCase()}), ${columns} columns (${source.toLowerCase()})`;
  return coarse
    ? `A map of the largest weights: ${size}.`
    : `A map of the weights: ${size}. The words and the bars say the same.`;
}

function one(kind: Kind): string {
  return kind.translated && !kind.within ? "word" : "token";
}
