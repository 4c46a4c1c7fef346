import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Explorer } from "./explorer.ts";

const Current = createContext<Explorer | null>(null);

/** What gives all panels inside it their explorer. */
export const ExplorerOf = Current.Provider;

/** The explorer in which a panel is. */
export function useExplorer(): Explorer {
  const explorer = useContext(Current);
  if (explorer === null) throw new Error("a panel outside of an explorer");
  return explorer;
}
