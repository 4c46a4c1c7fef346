import type { Answer, Door, Tokens } from "./door.ts";
import type { Excerpt } from "./excerpt.ts";
import { type Sheet, sheet } from "./sheet.ts";

const RESTING = 60; // ms at a head, after which its weights are asked for

/** Which head of an answer, and which part of its map. */
export interface Wanted {
  readonly layer: number;
  readonly head: number | null;
  readonly excerpt: Excerpt;
}

interface Next {
  readonly name: string;
  readonly request: AbortController;
  readonly sheet: Promise<Sheet | null>;
  came: Sheet | null;
}

/**
 * Asks the door for sheets. That of a head at which the reader points is asked for before it is
 * chosen, so that it is drawn at once. The tokens of a part are asked for once for all of its heads.
 */
export class Sheets {
  private next: Next | null = null;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private tokens: { readonly name: string; readonly came: Promise<Tokens> } | null = null;

  constructor(private readonly door: Door) {}

  /** Ask for what the reader may choose next, if it stays so for a moment; null: for nothing. */
  expect(answer: Answer, wanted: Wanted | null): void {
    clearTimeout(this.resting);
    if (!wanted || this.isNext(answer, wanted)) return;
    this.resting = setTimeout(() => {
      this.next?.request.abort();
      const request = new AbortController();
      const sheet = this.asked(answer, wanted, request.signal);
      const next: Next = { name: named(answer, wanted), request, sheet, came: null };
      this.next = next;
      sheet.then(
        (came) => (next.came = came),
        // Nobody chose it: what is wrong is said when it is asked for again.
        () => this.next === next && (this.next = null),
      );
    }, RESTING);
  }

  /** What was expected and has come. */
  ready(answer: Answer, wanted: Wanted): Sheet | null {
    return this.isNext(answer, wanted)?.came ?? null;
  }

  get(answer: Answer, wanted: Wanted, signal: AbortSignal): Promise<Sheet | null> {
    clearTimeout(this.resting);
    const next = this.isNext(answer, wanted);
    if (!next) return this.asked(answer, wanted, signal);
    // It was chosen: from now on it ends with what was chosen, not with the next expectation.
    this.next = null;
    signal.addEventListener("abort", () => next.request.abort());
    return next.sheet;
  }

  /** Let go of all. */
  stop(): void {
    clearTimeout(this.resting);
    this.next?.request.abort();
    this.next = this.tokens = null;
  }

  private isNext(answer: Answer, wanted: Wanted): Next | null {
    return this.next?.name === named(answer, wanted) ? this.next : null;
  }

  private async asked(answer: Answer, { layer: index, head, excerpt }: Wanted, signal: AbortSignal): Promise<Sheet | null> {
    const { map, layers } = answer;
    const layer = layers[index];
    if (map === null || !layer) return null;
    const name = JSON.stringify([map, index, excerpt]);
    return sheet(this.door, map, { layer, index, head }, excerpt, signal, () => {
      if (this.tokens?.name !== name) {
        // Nobody lets go of these, as another head may wait for them.
        const came = this.door.tokens(map, index, excerpt, new AbortController().signal);
        this.tokens = { name, came };
        came.catch(() => (this.tokens = null));
      }
      return this.tokens.came;
    });
  }
}

function named({ map }: Answer, { layer, head, excerpt }: Wanted): string {
  return JSON.stringify([map, layer, head, excerpt]);
}
