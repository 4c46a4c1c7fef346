import type { Layer } from "./door.ts";
import { element } from "./element.ts";
import { type Excerpt, type Span, farther, same, whole } from "./excerpt.ts";

const SMALL = 40; // places of each axis, up to which nobody needs a part of a map

/** The numbers that say which part of the map is in view, and by which another is asked for. */
export class Frame {
  private readonly form: HTMLFormElement;
  private readonly rows: Ends;
  private readonly keys: Ends;
  private shown: { layer: Layer; excerpt: Excerpt } | null = null;

  constructor(
    private readonly root: ShadowRoot,
    private readonly view: (excerpt: Excerpt) => void,
  ) {
    this.form = element(root, "frame", HTMLFormElement);
    [this.rows, this.keys] = [new Ends(root, "rows"), new Ends(root, "keys")];
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      view({ rows: this.rows.span, keys: this.keys.span });
    });
    element(root, "farther", HTMLButtonElement).addEventListener("click", () => this.change(farther));
    element(root, "whole", HTMLButtonElement).addEventListener("click", () =>
      this.change((_, layer) => whole(layer)),
    );
  }

  show(layer: Layer, excerpt: Excerpt): void {
    this.shown = { layer, excerpt };
    this.rows.show(excerpt.rows, layer.queries);
    this.keys.show(excerpt.keys, layer.keys);
    const all = same(excerpt, whole(layer));
    this.form.hidden = all && Math.max(layer.queries, layer.keys) <= SMALL;
    for (const id of ["farther", "whole"]) element(this.root, id, HTMLButtonElement).disabled = all;
  }

  private change(to: (excerpt: Excerpt, layer: Layer) => Excerpt): void {
    if (this.shown !== null) this.view(to(this.shown.excerpt, this.shown.layer));
  }
}

/** The first and the last place of one axis, counted from 0. */
class Ends {
  private readonly first: HTMLInputElement;
  private readonly last: HTMLInputElement;
  private readonly most: HTMLElement;

  constructor(root: ShadowRoot, axis: string) {
    this.first = element(root, `${axis}-first`, HTMLInputElement);
    this.last = element(root, `${axis}-last`, HTMLInputElement);
    this.most = element(root, `${axis}-most`, HTMLElement);
    for (const input of [this.first, this.last]) {
      input.addEventListener("input", () => {
        const swapped = Number(this.last.value) < Number(this.first.value);
        this.last.setCustomValidity(swapped ? "The last place comes before the first." : "");
      });
    }
  }

  get span(): Span {
    return { from: Number(this.first.value), to: Number(this.last.value) + 1 };
  }

  show({ from, to }: Span, most: number): void {
    for (const input of [this.first, this.last]) input.max = String(most - 1);
    [this.first.value, this.last.value] = [String(from), String(to - 1)];
    this.last.setCustomValidity("");
    this.most.textContent = `0–${(most - 1).toLocaleString("en")}`;
  }
}
