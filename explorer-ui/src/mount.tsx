import { h, render } from "preact";
import type { Door } from "./door.ts";
import { type Address, Explorer } from "./explorer.ts";
import { Screen } from "./screen.tsx";
import type { Tab } from "./tabs.tsx";
import { type Scheme, Theme } from "./theme.ts";

export interface Options {
  /** The style sheet of the explorer; see `constructed`. */
  readonly styles: CSSStyleSheet;
  /** The tabs of the inspector, which are there where the door can answer them. */
  readonly tabs: readonly Tab[];
  /** Where the link to what is shown stands; without it, nowhere. */
  readonly address?: Address;
  /** What is shown at first, as a link says it ("#row=2&l=3"), where there is no address. */
  readonly link?: string;
  /** "auto" (the default): as the reader prefers. */
  readonly scheme?: Scheme;
}

/** A style sheet for shadow roots. */
export function constructed(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

export interface Mounted {
  readonly explorer: Explorer;
  unmount(): void;
}

/**
 * Show an explorer inside `root`, as high as `root` is, and no lower than it can be read. It shares
 * nothing with the rest of the document: its elements and styles are in a shadow root. A document
 * may have several.
 */
export function mount(root: HTMLElement, door: Door, options: Options): Mounted {
  const host = document.createElement("div");
  host.className = "attlas-explorer";
  const shadow = host.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [options.styles];
  const frame = document.createElement("div");
  frame.className = "explorer";
  shadow.append(frame);
  root.append(host);
  const theme = new Theme(frame, options.scheme ?? "auto");
  const { address } = options;
  const explorer = new Explorer(door, theme, address ?? null);
  render(<Screen explorer={explorer} tabs={options.tabs} />, frame);
  const forget = address?.whenChanged(() => void explorer.follow(address.read()));
  void explorer.begin(address?.read() ?? options.link ?? "");
  return {
    explorer,
    unmount() {
      forget?.();
      explorer.stop();
      render(null, frame);
      theme.dispose();
      host.remove();
    },
  };
}
