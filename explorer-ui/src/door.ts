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
}

export interface Model {
  readonly facts: Facts;
}

export interface Layer {
  readonly name: string;
  readonly heads: number;
  readonly queries: number;
  readonly slots: number;
}

/** One translation; `map` names its weights, null where the model has no attention. */
export interface Answer {
  readonly text: string;
  readonly score: number | null;
  readonly source: readonly string[];
  readonly target: readonly string[];
  readonly map: string | null;
  /** Why there is no map; "" where there is one. */
  readonly blank: string;
  readonly layers: readonly Layer[];
  readonly remarks: readonly string[];
}

/** Where translations and weights come from: a server here, a file of one's own elsewhere. */
export interface Door {
  model(): Promise<Model>;
  translate(text: string, signal: AbortSignal): Promise<Answer>;
  tile(map: string, layer: number, signal: AbortSignal): Promise<Tile>;
}
