import "./order.ts";
import { openIn } from "./document.ts";
import { ALL_TABS } from "./model-tabs.tsx";
import { Served } from "./served.ts";

// The page of a server.
openIn(document.body, new Served(Number(new URLSearchParams(location.search).get("s"))), ALL_TABS);
