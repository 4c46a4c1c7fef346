import type { Excerpt } from "./excerpt.ts";
import type { Tile } from "./tile.ts";

/** What is known of the model; a fact that is not known is left out or null. */
export interface Facts {
  readonly name?: string | null;
  readonly source_language?: string | null;
  readonly target_language?: string | null;
  readonly attention?: string | null;
  readonly parameters?: number | null;
  readonly bleu?: number | null;
  readonly bleu_sentences?: number | null;
  readonly bleu_signature?: string | null;
  readonly example?: string | null;
  /** What it does with a text; "translate" where nothing is said. */
  readonly task?: "translate" | "read" | "continue" | "answer" | null;
}

/** What is shown. `texts` = how those of a trace begin; null where a model translates. */
export interface Model {
  readonly facts: Facts;
  readonly texts: readonly string[] | null;
}

/** `within` = one side looks at itself; else the target looks at the source. */
export interface Layer {
  /** The path of the module. */
  readonly name: string;
  /** What a person reads, and the heading under which it stands; several layers share a sheet. */
  readonly title: string;
  readonly sheet: string;
  readonly within: boolean;
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
}

/** One translation, or one text of a trace, which has no `text`. */
export interface Answer {
  readonly text: string | null;
  readonly score: number | null;
  /** Names the weights; null where the model has no attention. */
  readonly map: string | null;
  /** Why there is no map; "" where there is one. */
  readonly blank: string;
  readonly layers: readonly Layer[];
  readonly remarks: readonly string[];
}

/** The tokens of a part of a map; none where nobody named them. */
export interface Tokens {
  readonly rows: readonly string[];
  readonly keys: readonly string[];
}

/** What can be said of all heads in numbers, each over the queries of the text. */
export interface Statistics {
  readonly names: readonly string[];
  /** By layer and name, a number for each head; null = nobody knows. */
  readonly layers: readonly Readonly<Record<string, readonly number[] | null>>[];
  /** The head most worth seeing. */
  readonly first: { readonly layer: number; readonly head: number };
  readonly sampled: boolean;
}

/** A part of a map, of one head or (null) of all. */
export interface Part {
  readonly excerpt: Excerpt;
  readonly head: number | null;
}

/** Where translations and weights come from: a server here, a file of one's own elsewhere. */
export interface Door {
  model(): Promise<Model>;
  translate(text: string, signal: AbortSignal): Promise<Answer>;
  text(row: number, signal: AbortSignal): Promise<Answer>;
  /** A small picture of every head, by layer. */
  overview(map: string, signal: AbortSignal): Promise<readonly Tile[]>;
  statistics(map: string, signal: AbortSignal): Promise<Statistics>;
  tile(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile>;
  tokens(map: string, layer: number, excerpt: Excerpt, signal: AbortSignal): Promise<Tokens>;
}
