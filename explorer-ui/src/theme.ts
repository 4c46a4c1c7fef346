import { type ReadonlySignal, signal } from "@preact/signals-core";
import { type Ramp, differenceOnDark, differenceOnLight, onDark, onLight } from "./ramp.ts";

export type Scheme = "light" | "dark" | "auto";
export type Tone = "ink" | "quiet" | "paper" | "accent" | "line" | "edge" | "action";

// Apart for every kind of colour vision (after Okabe and Ito, 2008), 3:1 or more on the page.
const HEADS_ON_LIGHT = ["#0067a5", "#b8480c", "#007a55", "#8b3a93", "#555555", "#8a6a00"];
const HEADS_ON_DARK = ["#6cc0f5", "#ff9d5c", "#3fd0a3", "#e79be0", "#d2d2d2", "#ecd84a"];

/** The colours of one explorer: those that its style sheet names, and the ramp that suits them. */
export class Theme {
  private readonly preference = matchMedia("(prefers-color-scheme: dark)");
  private readonly forced = matchMedia("(forced-colors: active)");
  private readonly count = signal(0);
  private readonly read = new Map<string, string>();
  private readonly changed = () => this.apply();
  private tones: CSSStyleDeclaration;

  constructor(
    private readonly frame: HTMLElement,
    private readonly scheme: Scheme,
  ) {
    this.tones = getComputedStyle(frame);
    for (const one of [this.preference, this.forced]) one.addEventListener("change", this.changed);
    this.apply();
  }

  get dark(): boolean {
    return this.scheme === "dark" || (this.scheme === "auto" && this.preference.matches);
  }

  get ramp(): Ramp {
    return this.dark ? onDark : onLight;
  }

  /** Kept, because to ask for it makes the browser compute all styles that changed. */
  tone(name: Tone): string {
    return this.kept(name, () => this.tones.getPropertyValue(`--${name}`).trim());
  }

  get font(): string {
    return this.kept("font", () => this.tones.fontFamily);
  }

  private kept(name: string, read: () => string): string {
    const found = this.read.get(name) ?? read();
    this.read.set(name, found);
    return found;
  }

  /** Changes whenever the colours do. */
  get changes(): ReadonlySignal<number> {
    return this.count;
  }

  /** From −1 to 1. */
  get differences(): Ramp {
    return this.dark ? differenceOnDark : differenceOnLight;
  }

  /** One colour for each head that is looked at together with others. */
  get heads(): readonly string[] {
    return this.dark ? HEADS_ON_DARK : HEADS_ON_LIGHT;
  }

  dispose(): void {
    for (const one of [this.preference, this.forced]) one.removeEventListener("change", this.changed);
  }

  private apply(): void {
    this.frame.classList.toggle("dark", this.dark);
    this.read.clear();
    this.count.value += 1;
  }
}
