import { openIn } from "./document.ts";
import { embedded } from "./embedded.ts";
import { TABS } from "./tabs.tsx";

// A file of one's own, which holds its data.
const door = embedded(document);
Object.assign(window, { attlas: { door } }); // the numbers, for a console
openIn(document.body, door, TABS);
