import type { Answer, Beams, Hypothesis } from "./door.ts";
import type { Span } from "./excerpt.ts";
import { wordSpans } from "./joining.ts";
import { labels } from "./label.ts";

/** A stretch of tokens that several hypotheses have in common, and what follows it. */
export interface Branch {
  readonly text: string;
  readonly next: readonly Branch[];
  /** The hypothesis that ends here, by its place among all. */
  readonly leaf: number | null;
}

/** The hypotheses as a tree: what they begin with alike stands once; best first. */
export function tree(hypotheses: readonly Hypothesis[]): Branch[] {
  return grown(hypotheses, [...hypotheses.keys()], 0);
}

function grown(all: readonly Hypothesis[], own: readonly number[], from: number): Branch[] {
  const token = (place: number, at: number) => all[place]?.tokens[at];
  const groups = new Map<string, number[]>();
  for (const place of own) {
    const first = token(place, from);
    if (first !== undefined) groups.set(first, [...(groups.get(first) ?? []), place]);
  }
  return [...groups.values()].map((group) => {
    const [first = 0] = group;
    let to = from + 1;
    const alike = () => token(first, to) !== undefined && group.every((place) => token(place, to) === token(first, to));
    while (alike()) to++;
    return {
      text: reading(all[first]?.tokens ?? [], from, to),
      next: grown(all, group, to),
      leaf: group.find((place) => all[place]?.tokens.length === to) ?? null,
    };
  });
}

/** Tokens as they are read, with spaces where words begin. */
export function reading(tokens: readonly string[], from: number, to: number): string {
  return labels(tokens, tokens.length)
    .slice(from, to)
    .map(({ text, begins }, index) => (begins && index > 0 ? ` ${text}` : text))
    .join("");
}

/** The ids with which a translation begins that has another token in the place of an output. */
export function prefix({ outputs }: Beams, place: number, id: number): number[] {
  return [...outputs.slice(0, place).map((output) => output.id), id];
}

/** A logarithm: "−3.21". */
export function logarithm(value: number | null): string {
  return value === null ? "−∞" : value.toFixed(2).replace("-", "−");
}

/** The words of a translation, as rows of the map of a layer; none where its rows are others. */
export function wordsOf(answer: Answer | null, layer: number): readonly Span[] {
  const doubt = answer?.doubt;
  return doubt?.rows[layer] ? wordSpans(labels(doubt.outputs, doubt.outputs.length)) : [];
}
