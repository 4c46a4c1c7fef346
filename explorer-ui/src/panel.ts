import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Explorer } from "./explorer.ts";
import { useTracking } from "./signals.ts";

const Current = createContext<Explorer | null>(null);

/** What gives all panels inside it their explorer. */
export const ExplorerOf = Current.Provider;

/** The explorer in which a panel is, which is drawn again when signals change that it reads. */
export function useExplorer(): Explorer {
  useTracking();
  const explorer = useContext(Current);
  if (explorer === null) throw new Error("a panel outside of an explorer");
  return explorer;
}
