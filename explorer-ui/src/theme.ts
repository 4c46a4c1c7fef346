import { type Ramp, onDark, onLight } from "./ramp.ts";

export type Scheme = "light" | "dark" | "auto";
export type Tone = "ink" | "quiet" | "paper" | "accent" | "line" | "action";

/** The colours of one explorer: those that its style sheet names, and the ramp that suits them. */
export class Theme {
  private readonly preference = matchMedia("(prefers-color-scheme: dark)");
  private readonly listeners = new Set<() => void>();
  private readonly changed = () => this.apply();
  private tones: CSSStyleDeclaration;

  constructor(
    private readonly frame: HTMLElement,
    private readonly scheme: Scheme,
  ) {
    this.tones = getComputedStyle(frame);
    this.preference.addEventListener("change", this.changed);
    this.apply();
  }

  get dark(): boolean {
    return this.scheme === "dark" || (this.scheme === "auto" && this.preference.matches);
  }

  get ramp(): Ramp {
    return this.dark ? onDark : onLight;
  }

  tone(name: Tone): string {
    return this.tones.getPropertyValue(`--${name}`).trim();
  }

  get font(): string {
    return this.tones.fontFamily;
  }

  whenChanged(redraw: () => void): void {
    this.listeners.add(redraw);
  }

  dispose(): void {
    this.preference.removeEventListener("change", this.changed);
    this.listeners.clear();
  }

  private apply(): void {
    this.frame.classList.toggle("dark", this.dark);
    for (const redraw of this.listeners) redraw();
  }
}
