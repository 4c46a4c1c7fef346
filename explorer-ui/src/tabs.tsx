import { type ComponentType, h, render } from "preact";
import { ComparePanel } from "./compare-panel.tsx";
import { DistributionPanel } from "./distribution-panel.tsx";
import type { Answer, Door, Model } from "./door.ts";
import type { Explorer } from "./explorer.ts";
import { ImagePanel } from "./image-panel.tsx";
import { LinesPanel } from "./lines-panel.tsx";
import { NotesPanel } from "./notes-panel.tsx";
import { ExplorerOf } from "./panel.ts";
import { StatisticsPanel } from "./statistics-panel.tsx";

/** A tab of the inspector. */
export interface Tab {
  /** Letters, as the link has it. */
  readonly id: string;
  readonly title: string;
  /** Whether it has something to say of this answer of this door. */
  accepts(door: Door, answer: Answer | null, model: Model | null): boolean;
  /** What it returns takes the panel away. */
  mount(room: HTMLElement, explorer: Explorer): () => void;
}

/** A tab whose panel follows the explorer's signals by itself. */
export function tab(id: string, title: string, Content: ComponentType, accepts: Tab["accepts"] = () => true): Tab {
  return {
    id,
    title,
    accepts,
    mount(room, explorer) {
      render(
        <ExplorerOf value={explorer}>
          <Content />
        </ExplorerOf>,
        room,
      );
      return () => render(null, room);
    },
  };
}

/** The tabs that need no model, of which a file of one's own has no others. */
export const TABS: readonly Tab[] = [
  tab("distribution", "Distribution", DistributionPanel),
  tab("lines", "Lines", LinesPanel),
  tab("image", "Image", ImagePanel, (_, answer) => answer?.layers.some(({ image }) => image) === true),
  tab("statistics", "Statistics", StatisticsPanel),
  tab("compare", "Compare", ComparePanel, (_, answer, model) => {
    const layers = answer?.layers ?? [];
    return !!model?.sources?.[1] || !!layers[1] || layers[0]?.heads !== 1; // a single head has none beside it
  }),
  tab("notes", "Notes", NotesPanel, (door, _, model) => door.notes !== undefined && model?.notes === true),
];
