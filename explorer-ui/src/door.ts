import type { Excerpt, Span } from "./excerpt.ts";
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
  readonly task?: "translate" | "read" | "continue" | "answer" | "classify" | null;
}

/** What is shown. `texts` = how those of a trace begin; null where a model translates. */
export interface Model {
  readonly facts: Facts;
  readonly texts: readonly string[] | null;
  /** Whether the door has the reader's notes, links of annotators, and Parquet. */
  readonly parquet?: boolean;
  readonly notes?: boolean;
  readonly gold?: boolean;
  /** The names of all that can be shown, where there are several. */
  readonly sources?: readonly string[];
}

/** What a reader wrote of a view: the part of the page's address from "#" on. */
export interface Note {
  readonly id: string;
  readonly text: string;
  readonly link: string;
}

/** Places of a map that are the patches of an image, row by row from `first` on. */
export interface Patches {
  /** How many rows, and how many columns. */
  readonly grid: readonly [number, number];
  readonly first: number;
  /** The layer by which the image is asked for. */
  readonly of: number;
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
  /** Left out where the keys are no patches. */
  readonly image?: Patches;
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
  /** How many tokens of its one text a decoder was given, of which output t is token t + 1; 0 elsewhere. */
  readonly prompt?: number;
  /** What can be doubted of it; null or left out where its model cannot be run again. */
  readonly doubt?: Doubtful | null;
  /** Whether its model searches for what it writes. */
  readonly beams?: boolean;
}

/** A link of annotators between two words: their tokens, the first and the one after the last. */
export interface GoldLink {
  readonly source: readonly [number, number];
  readonly target: readonly [number, number];
  readonly sure: boolean;
  /** Whether the head has this link too. */
  readonly guessed: boolean;
}

/** How well a head finds those links; `guessed` = how many it has; `notes` say all that in words. */
export interface Alignment {
  readonly notes: readonly string[];
  readonly links: readonly GoldLink[];
  readonly guessed: number;
  readonly error: number;
  readonly precision: number | null;
  readonly recall: number;
}

/** The tokens that can be erased, the outputs, which of them is of most interest, and of each layer
 * whether its row t is the query of output t, and its key s token s of the source. */
export interface Doubtful {
  readonly source: readonly string[];
  readonly outputs: readonly string[];
  readonly first: number;
  readonly rows: readonly boolean[];
  readonly keys: readonly boolean[];
}

/** Which output, and which row of which head; `head` null = all. `weight` is a share of the row; null =
 * none is set. */
export interface DoubtQuestion {
  readonly layer: number;
  readonly head: number | null;
  readonly output: number;
  readonly row: number;
  readonly key: number | null;
  readonly weight: number | null;
  readonly erased: Span | null;
}

export type Ranked = readonly (readonly [string, number])[];

/** What one change did to an output; or why it is impossible. */
export interface Effect {
  readonly name: "uniform" | "permuted" | "off" | "weight" | "erased" | "adversary";
  /** What it does, in words. */
  readonly does: string;
  readonly impossible?: string;
  /** Of the logarithm of the probability: the mean over draws, and their standard deviation. */
  readonly delta?: number | null;
  readonly spread?: number | null;
  readonly probability?: number;
  readonly top?: Ranked;
}

export interface Effects {
  readonly output: string;
  readonly probability: number;
  readonly top: Ranked;
  readonly draws: number;
  /** How the model was asked, in words. */
  readonly how: string;
  readonly changes: readonly Effect[];
  readonly key: number;
  readonly erased: readonly [number, number] | null;
  /** Of the row, key by key; the gradient is that of the logarithm of the probability. */
  readonly weights: readonly number[];
  readonly seen: readonly boolean[];
  readonly gradient: readonly number[] | null;
}

/** Other weights of the same output: how far they are from the model's, and from it at the most. */
export interface Adversary {
  readonly changes: readonly Effect[];
  readonly divergence: number;
  readonly at_most: number;
  readonly distance: number;
  /** Whether all rows of the head have other weights, or this one alone. */
  readonly whole: boolean;
  readonly weights: readonly number[];
}

/** Which row of which head; the numbers of `key` come in any case. */
export interface MechanismQuestion {
  readonly layer: number;
  readonly head: number;
  readonly row: number;
  readonly key: number | null;
  /** Whether queries and keys are those that the layer has without positions, where it can. */
  readonly unplaced?: boolean;
}

/** Of a row, a number in each column for each key that was sent, in the order of the text. */
export interface Scores {
  readonly keys: {
    readonly index: readonly number[];
    readonly product: readonly (number | null)[];
    readonly bias: readonly (number | null)[] | null;
    readonly score: readonly (number | null)[];
    /** Why a key is hidden; "" where it is seen. */
    readonly hidden: readonly string[];
    readonly weight: readonly (number | null)[];
  };
  /** What was not sent: keys that are seen, the logarithm of the sum of their e^score; and others. */
  readonly left: { readonly seen: number; readonly log_sum: number | null; readonly hidden: number };
}

/** How the weights of a row came about: weight = softmax(cap(scale · product) + bias) over the keys
 * that are seen. A long vector is cut. */
export interface Explained extends Scores {
  /** Why nothing of this is known; "" where it is. */
  readonly missing: string;
  readonly form: "scaled" | "dot" | "general" | "additive" | "concat";
  readonly scale: number;
  readonly softcap: number | null;
  /** How many numbers a query and a key have. */
  readonly width: number;
  readonly query: readonly (number | null)[];
  /** v of v · tanh(q + k); null where the product is q · k. */
  readonly energy: readonly (number | null)[] | null;
  /** The same row with positions, where the rest is without them; null where it is with them. */
  readonly placed: Scores | null;
  /** The keys whose vectors were sent. */
  readonly shown: readonly number[];
  readonly vectors: readonly (readonly (number | null)[])[];
  readonly values: readonly (readonly (number | null)[])[] | null;
  readonly context: readonly (number | null)[] | null;
  readonly no_values: string;
  /** What has to be known of the scale, and of the vectors. */
  readonly notes: readonly string[];
  /** What is left out where positions are; "" where they cannot be, and why. */
  readonly positions: string;
  readonly no_positions: string;
}

/** A translation with which a search ends. */
export interface Hypothesis {
  readonly text: string;
  readonly tokens: readonly string[];
  readonly score: number | null;
  readonly log_probability: number | null;
  readonly finished: boolean;
}

/** A token that was written, and the most probable ones in its place; `open` = one can go on there. */
export interface Output {
  readonly token: string;
  readonly id: number;
  readonly log_probability: number | null;
  readonly top: readonly { readonly id: number; readonly token: string; readonly probability: number; readonly open: boolean }[];
}

/** What else a model could have written, best first. */
export interface Beams {
  readonly num_beams: number;
  /** What has to be known of the hypotheses, of their numbers, and of the outputs. */
  readonly notes: readonly string[];
  readonly hypotheses: readonly Hypothesis[];
  readonly outputs: readonly Output[];
}

/** The tokens of a part of a map; none where nobody named them. */
export interface Tokens {
  readonly rows: readonly string[];
  readonly keys: readonly string[];
}

/** What can be said of all heads in numbers, each over the queries of the text. */
export interface Statistics {
  readonly names: readonly string[];
  /** By layer and name, a number for each head; null = nobody knows. "row": the one most worth seeing. */
  readonly layers: readonly Readonly<Record<string, readonly number[] | null>>[];
  /** The head most worth seeing, and why it is, in words. */
  readonly first: { readonly layer: number; readonly head: number; readonly why?: string };
  readonly sampled: boolean;
}

/** A part of a map, of one head or (null) of all; `rough`: a byte a weight is exact enough. */
export interface Part {
  readonly excerpt: Excerpt;
  readonly head: number | null;
  readonly rough?: boolean;
}

/** Where translations and weights come from: a server here, a file of one's own elsewhere. */
export interface Door {
  model(): Promise<Model>;
  /** A translation that begins with these ids. */
  translate(text: string, forced: readonly number[], signal: AbortSignal): Promise<Answer>;
  text(row: number, signal: AbortSignal): Promise<Answer>;
  /** A small picture of every head, by layer. */
  overview(map: string, signal: AbortSignal): Promise<readonly Tile[]>;
  statistics(map: string, signal: AbortSignal): Promise<Statistics>;
  tile(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile>;
  tokens(map: string, layer: number, excerpt: Excerpt, signal: AbortSignal): Promise<Tokens>;
  /** Of a server: the page with this text as one file; or numbers of a layer in Parquet. */
  file?(map: string, link: string, layer?: number, part?: Part): Promise<ArrayBuffer>;
  /** The image of a layer that has one, as PNG. */
  image(map: string, layer: number, signal: AbortSignal): Promise<ArrayBuffer>;
  /** Of a server, of a map that takes long: what it knows of a part at once, and which share of it
   * is read. */
  glance?(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile>;
  progress?(map: string, layer: number, part: Part, signal: AbortSignal): Promise<number | null>;
  /** Of a server of several: which one this is, a door to another one, and a page that shows it. */
  readonly source?: number;
  other?(source: number): Door;
  choose?(source: number): void;
  /** Of a door to queries and keys: how the weights of a row came about. */
  mechanism?(map: string, question: MechanismQuestion, signal: AbortSignal): Promise<Explained>;
  /** Of a door to a model: what else it could have written. */
  beams?(map: string, signal: AbortSignal): Promise<Beams>;
  /** Of a door to a model: what an output becomes when a head looks elsewhere. */
  doubt?(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<Effects>;
  /** Of a door to gold links; `head` null = the mean of all. */
  alignment?(map: string, layer: number, head: number | null, signal: AbortSignal): Promise<Alignment>;
  adversary?(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<Adversary>;
  /** Which share of the search for other weights is done; null where none is under way. */
  searched?(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<number | null>;
  /** The reader's notes, where the model says that there are some; each change gives all of them. */
  notes?(): Promise<readonly Note[]>;
  addNote?(text: string, link: string): Promise<readonly Note[]>;
  removeNote?(id: string): Promise<readonly Note[]>;
}
