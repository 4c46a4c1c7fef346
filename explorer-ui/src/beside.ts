import { signal } from "@preact/signals-core";
import type { Answer, Door } from "./door.ts";
import { type Matrix, head as headOf, mean } from "./matrix.ts";
import { Problem } from "./problem.ts";
import type { Sheet } from "./sheet.ts";
import type { State } from "./state.ts";

/** The weights in view as another source has them: of the same text, layer, head and part. */
export class Beside {
  /** Or why it has none; null while they are on their way. */
  readonly found = signal<Matrix | Problem | null>(null);
  private request = new AbortController();
  private kept: { readonly of: string; readonly answer: Answer } | null = null;

  constructor(private readonly door: Door) {}

  /** Ask a source for what is in view. */
  async follow(
    source: number | null,
    sheet: Sheet | null,
    head: number | null,
    { answer, row, sentence, forced }: State,
  ): Promise<void> {
    this.request.abort();
    this.found.value = null;
    const door = source === null ? undefined : this.door.other?.(source);
    if (!door || !answer || !sheet || sheet.preview) return;
    const { signal: stop } = (this.request = new AbortController());
    try {
      const of = JSON.stringify([source, row, sentence, forced]);
      if (this.kept?.of !== of) {
        const text = sentence === null ? door.text(row ?? 0, stop) : door.translate(sentence, forced, stop);
        this.kept = { of, answer: await text };
      }
      const { map, layers } = this.kept.answer;
      const [own, other] = [answer.layers[sheet.layer], layers[sheet.layer]];
      const rewritten = answer.text !== this.kept.answer.text;
      const ofOutput = answer.doubt?.rows[sheet.layer]; // of other words, even where they are as many
      if (map === null || own?.queries !== other?.queries || own?.keys !== other?.keys || (rewritten && ofOutput)) {
        const hint = rewritten && layers.some(({ within }) => !within) ? "they wrote other texts: compare encoder layers" : "choose another layer";
        throw new Problem("the same text and layer there", "a map with other rows and keys", hint);
      }
      const tile = await door.tile(map, sheet.layer, { excerpt: sheet.excerpt, head }, stop);
      if (!stop.aborted) this.found.value = head === null ? mean(tile) : headOf(tile, 0);
    } catch (thrown) {
      if (stop.aborted) return;
      this.kept = null;
      this.found.value = Problem.of(thrown);
    }
  }

  stop(): void {
    this.request.abort();
  }
}
