import type { Component, ComponentChildren } from "preact";
import type { Explorer } from "./explorer.ts";
import { context, untracked } from "./signals.ts";

/**
 * Gives all panels inside it their explorer: in the object that Preact hands down to every component,
 * of which `createContext` would make more bytes.
 */
export const ExplorerOf = untracked(function (
  this: Component,
  { value, children }: { value: Explorer; children?: ComponentChildren },
) {
  this.getChildContext = () => ({ explorer: value });
  return children;
});

/** The explorer in which the panel is that is drawn now. */
export function useExplorer(): Explorer {
  const { explorer } = context as { explorer?: Explorer };
  if (!explorer) throw new Error("a panel outside of an explorer");
  return explorer;
}
