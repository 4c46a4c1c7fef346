import { AlignmentPanel } from "./alignment-panel.tsx";
import { BeamsPanel } from "./beams-panel.tsx";
import { DoubtPanel } from "./doubt-panel.tsx";
import { MechanismPanel } from "./mechanism-panel.tsx";
import { TABS, type Tab, tab } from "./tabs.tsx";

/** All tabs: also those that ask Python for more than weights. */
export const ALL_TABS: readonly Tab[] = [
  ...TABS.slice(0, 3),
  tab("mechanism", "Mechanism", MechanismPanel, (door) => door.mechanism !== undefined),
  ...TABS.slice(3, 5),
  // Of a model that has no output, it says so.
  tab("doubt", "Doubt", DoubtPanel, (door, answer, model) => door.doubt !== undefined && !!answer && model?.texts === null),
  tab("beams", "Beams", BeamsPanel, (door, answer) => door.beams !== undefined && answer?.beams === true),
  tab("alignment", "Alignment", AlignmentPanel, (door, _, model) => door.alignment !== undefined && model?.gold === true),
  ...TABS.slice(5),
];
